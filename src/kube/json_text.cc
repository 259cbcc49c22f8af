#include "src/kube/json_text.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace sluice::kube {
namespace {

namespace dom = simdjson::dom;

// A parser keeps some ten times its text's size. Each thread keeps one for the texts that come all the time.
constexpr std::size_t kKeptTextBytes = 16 << 10;
constexpr std::size_t kMaxDepth = 1000;

Json value_of(const dom::element& element, MemberPath left_out);

Json object_of(const dom::object& members, MemberPath left_out) {
  Json object = Json::object();
  auto& map = object.get_ref<Json::object_t&>();
  for (const dom::key_value_pair member : members) {
    const bool on_the_way = !left_out.empty() && left_out.front() == member.key;
    if (on_the_way && left_out.size() == 1) continue;
    // In most objects the members come in this order.
    map.insert_or_assign(map.end(), std::string(member.key),
                         value_of(member.value, on_the_way ? left_out.subspan(1) : MemberPath()));
  }
  return object;
}

Json array_of(const dom::array& elements, MemberPath left_out) {
  const bool on_the_way = !left_out.empty() && left_out.front() == "*";
  Json array = Json::array();
  auto& list = array.get_ref<Json::array_t&>();
  list.reserve(elements.size());
  for (const dom::element element : elements)
    list.push_back(value_of(element, on_the_way ? left_out.subspan(1) : MemberPath()));
  return array;
}

Json value_of(const dom::element& element, MemberPath left_out) {
  switch (element.type()) {
    case dom::element_type::OBJECT: return object_of(element.get_object().value_unsafe(), left_out);
    case dom::element_type::ARRAY: return array_of(element.get_array().value_unsafe(), left_out);
    case dom::element_type::STRING: return std::string(element.get_string().value_unsafe());
    case dom::element_type::INT64: return element.get_int64().value_unsafe();
    case dom::element_type::UINT64: return element.get_uint64().value_unsafe();
    case dom::element_type::DOUBLE: return element.get_double().value_unsafe();
    case dom::element_type::BOOL: return element.get_bool().value_unsafe();
    case dom::element_type::NULL_VALUE: break;
  }
  return nullptr;
}

std::optional<Json> parse_with(dom::parser& parser, std::string_view text, MemberPath left_out) {
  dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  return value_of(root, left_out);
}

// By byte: whether it is written as it is, wherever it stands.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char byte) { return kPlain[byte]; });
}

void write_text(const std::string& text, std::string& out) {
  if (is_plain(text))
    out.append(1, '"').append(text).append(1, '"');
  else
    out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Number>
void write_number(Number number, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
}

void write(const Json& value, std::string& out) {
  const char* separator = "";
  switch (value.type()) {
    case Json::value_t::object:
      out += '{';
      for (const auto& [name, member] : value.get_ref<const Json::object_t&>()) {
        write_text(name, out.append(std::exchange(separator, ",")));
        write(member, out.append(1, ':'));
      }
      out += '}';
      return;
    case Json::value_t::array:
      out += '[';
      for (const Json& element : value) write(element, out.append(std::exchange(separator, ",")));
      out += ']';
      return;
    case Json::value_t::string: return write_text(value.get_ref<const std::string&>(), out);
    case Json::value_t::number_integer: return write_number(value.get<std::int64_t>(), out);
    case Json::value_t::number_unsigned: return write_number(value.get<std::uint64_t>(), out);
    default: out += value.dump(); return;
  }
}

}  // namespace

std::optional<Json> parse_json(std::string_view text, MemberPath left_out) {
  if (text.size() <= kKeptTextBytes) {
    thread_local dom::parser kept;
    if (kept.capacity() == 0 && kept.allocate(kKeptTextBytes, kMaxDepth) != simdjson::SUCCESS) return std::nullopt;
    return parse_with(kept, text, left_out);
  }
  dom::parser parser;
  if (parser.allocate(text.size(), kMaxDepth) != simdjson::SUCCESS) return std::nullopt;
  return parse_with(parser, text, left_out);
}

// The library's own writer takes twice as long: it decodes each byte as UTF-8.
std::string text_of(const Json& value) {
  std::string text;
  write(value, text);
  return text;
}

}  // namespace sluice::kube
