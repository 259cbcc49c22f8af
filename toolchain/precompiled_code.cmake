# Debug builds of clang generate the code of a precompiled header's inline functions once, in a library of its own (-fpch-codegen). Else each
# file that uses std::map or nlohmann::json has a copy of all that it uses: nearly half of the CPU time of the sanitizer's build.
set(SLUICE_PRECOMPILED_CODE OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(SLUICE_PRECOMPILED_CODE ON)
  # And templates are instantiated once, with the header.
  add_compile_options(-fpch-codegen -fpch-instantiate-templates -DSLUICE_INSTANTIATED_WITH_HEADER)
  # Some inline functions of the standard library call others that it does not have. They are left out, as nothing uses them.
  add_link_options(-Wl,--gc-sections)
endif()

# sluice_precompiled_code(TARGET): whatever is linked with TARGET gets the code of its precompiled header, too.
function(sluice_precompiled_code target)
  if(NOT SLUICE_PRECOMPILED_CODE)
    return()
  endif()
  get_target_property(folder ${target} BINARY_DIR)
  set(header ${folder}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch)
  set(object ${folder}/${target}_precompiled_code.o)
  # Optimised a little: 40 s more of compiling, and what copies and compares JSON under a sanitizer takes half the time.
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG} -O1")
  get_property(options DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY COMPILE_OPTIONS)
  add_custom_command(OUTPUT ${object} DEPENDS ${target} VERBATIM
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${options} -ffunction-sections -c ${header} -o ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(${target}_precompiled_code STATIC ${object})
  set_target_properties(${target}_precompiled_code PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} INTERFACE ${target}_precompiled_code)
endfunction()
