# ccache, where it is installed, also for files that are compiled with precompiled headers, and from one clone to the next.
find_program(CCACHE ccache)
if(NOT CCACHE OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()  # tools/build_times.py brings a launcher of its own
endif()
set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
# Without the sloppiness ccache passes by every file with a precompiled header.
set(CMAKE_CXX_COMPILER_LAUNCHER
  ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${CCACHE})

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
else()
  # The form of this option whose path ccache understands.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
endif()

# sluice_sum_precompiled(TARGET HEADER): what ccache takes for the contents of the target's precompiled header, HEADER with all that
# it includes. clang's own file holds the paths of this clone, with which no other clone would find anything.
function(sluice_sum_precompiled target header)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++${CMAKE_CXX_STANDARD} -E -P -x c++ -Wno-pragma-once-outside-header -I ${CMAKE_SOURCE_DIR} ${header}
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 sum "${text}")
  get_target_property(folder ${target} BINARY_DIR)
  file(WRITE ${folder}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum ${sum})
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
endfunction()
