#include "src/kube/fake/cel.h"

#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "src/kube/quantity.h"

namespace sluice::kube::fake {
namespace {

// A part of another value, or one of its own: a rule about a name must not copy the object around it.
using Value = std::shared_ptr<const Json>;
// What names mean: self, oldSelf and the variables of exists().
using Scope = std::map<std::string, Value, std::less<>>;
using Evaluate = std::function<Result<Value>(const Scope&)>;

// REQUIRES: `json` outlives the value.
Value borrowed(const Json& json) { return {Value(), &json}; }
Value part_of(const Value& whole, const Json& part) { return {whole, &part}; }
Value made(Json json) { return std::make_shared<const Json>(std::move(json)); }

Error cannot(std::string what) { return invalid_argument(std::move(what)); }

Result<bool> truth(const Result<Value>& value) {
  if (!value.ok()) return value.error();
  if (!(*value)->is_boolean()) return cannot("no boolean: " + (*value)->dump());
  return (*value)->get<bool>();
}

// A quantity is carried as its value in thousandths, marked by this member.
constexpr const char* kQuantityMark = "\x01quantity";

Result<Json> to_quantity(const Json& text) {
  if (!text.is_string()) return cannot("quantity() of no text");
  SLUICE_TRY(const std::int64_t thousandths, parse_millicores(text.get<std::string>()));
  return Json{{kQuantityMark, thousandths}};
}

Evaluate either(bool decisive, Evaluate left, Evaluate right) {
  return [decisive, left = std::move(left), right = std::move(right)](const Scope& scope) -> Result<Value> {
    const Result<bool> first = truth(left(scope));
    if (first.ok() && *first == decisive) return made(decisive);
    const Result<bool> second = truth(right(scope));
    if (second.ok() && *second == decisive) return made(decisive);
    if (!first.ok()) return first.error();
    if (!second.ok()) return second.error();
    return made(!decisive);
  };
}

Result<Json> compare(const std::string& operation, const Json& left, const Json& right) {
  if (operation == "==") return Json(left == right);
  if (operation == "!=") return Json(left != right);
  if (operation == "in") {
    if (right.is_object() && left.is_string()) return Json(right.contains(left.get<std::string>()));
    if (!right.is_array()) return cannot("'in' needs a list or a map");
    return Json(std::find(right.begin(), right.end(), left) != right.end());
  }
  if (!(left.is_number() && right.is_number()) && !(left.is_string() && right.is_string()))
    return cannot("'" + operation + "' between " + left.dump() + " and " + right.dump());
  if (operation == "<") return Json(left < right);
  if (operation == "<=") return Json(left <= right);
  if (operation == ">") return Json(left > right);
  return Json(left >= right);
}

Result<Value> member(const Value& object, const std::string& name) {
  const auto found = object->find(name);  // the end of what is no object, too
  if (found == object->end()) return cannot("no such key: " + name);
  return part_of(object, *found);
}

// A schema's patterns are few and are matched again with every write.
const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> known;
  const auto found = known.find(pattern);
  return found != known.end() ? found->second : known.emplace(pattern, std::regex(pattern)).first->second;
}

Result<Json> call(const std::string& name, const Json& argument) {
  if (name == "quantity") return to_quantity(argument);
  if (name == "string") return argument.is_string() ? argument : Json(argument.dump());
  if (argument.is_string()) return Json(argument.get_ref<const std::string&>().size());
  if (argument.is_structured()) return Json(argument.size());
  return cannot("size() of " + argument.dump());
}

Result<Json> method(const std::string& name, const Json& target, const Json& argument) {
  if (name == "compareTo" || name == "add") {
    const auto left = target.find(kQuantityMark);
    const auto right = argument.find(kQuantityMark);
    if (left == target.end() || right == argument.end()) return cannot(name + "() needs quantities");
    if (name == "compareTo") return Json(*left < *right ? -1 : *left > *right ? 1 : 0);
    std::int64_t sum = 0;
    if (__builtin_add_overflow(left->get<std::int64_t>(), right->get<std::int64_t>(), &sum))
      return cannot("add() of quantities that are too large");
    return Json{{kQuantityMark, sum}};
  }
  if (!target.is_string() || !argument.is_string()) return cannot(name + "() needs texts");
  const auto& text = target.get_ref<const std::string&>();
  const auto& wanted = argument.get_ref<const std::string&>();
  if (name == "startsWith") return Json(text.starts_with(wanted));
  return Json(std::regex_search(text, compiled(wanted)));
}

// Recursive descent: or, and, comparison, negation, postfix, primary.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Evaluate> parse() {
    SLUICE_TRY(Evaluate root, parse_or());
    skip_space();
    if (at_ != text_.size()) return expected("the end");
    return root;
  }
  bool mentions_old_self() const { return mentions_old_self_; }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  Error expected(std::string_view what) const {
    return invalid_argument("CEL at character " + std::to_string(at_) + ": expected " + std::string(what) + ": " +
                            std::string(text_));
  }

  Result<Evaluate> parse_or() {
    SLUICE_TRY(Evaluate left, parse_and());
    while (take("||")) {
      SLUICE_TRY(Evaluate right, parse_and());
      left = either(true, std::move(left), std::move(right));
    }
    return left;
  }

  Result<Evaluate> parse_and() {
    SLUICE_TRY(Evaluate left, parse_comparison());
    while (take("&&")) {
      SLUICE_TRY(Evaluate right, parse_comparison());
      left = either(false, std::move(left), std::move(right));
    }
    return left;
  }

  Result<Evaluate> parse_comparison() {
    SLUICE_TRY(Evaluate left, parse_negation());
    for (const char* operation : {"==", "!=", "<=", ">=", "<", ">", "in "}) {
      if (!take(operation)) continue;
      SLUICE_TRY(Evaluate right, parse_negation());
      const std::string name = operation == std::string_view("in ") ? "in" : operation;
      return Evaluate([=](const Scope& scope) -> Result<Value> {
        SLUICE_TRY(const Value a, left(scope));
        SLUICE_TRY(const Value b, right(scope));
        SLUICE_TRY(Json holds, compare(name, *a, *b));
        return made(std::move(holds));
      });
    }
    return left;
  }

  Result<Evaluate> parse_negation() {
    skip_space();
    if (text_.substr(at_, 2) == "!=" || !take("!")) return parse_postfix();
    SLUICE_TRY(Evaluate operand, parse_negation());
    return Evaluate([=](const Scope& scope) -> Result<Value> {
      SLUICE_TRY(const bool value, truth(operand(scope)));
      return made(!value);
    });
  }

  Result<Evaluate> parse_postfix() {
    SLUICE_TRY(Evaluate value, parse_primary());
    for (;;) {
      if (take("[")) {
        SLUICE_TRY(Evaluate key, parse_or());
        if (!take("]")) return expected("]");
        value = [=](const Scope& scope) -> Result<Value> {
          SLUICE_TRY(const Value object, value(scope));
          SLUICE_TRY(const Value name, key(scope));
          if (!name->is_string()) return cannot("an index that is no text");
          return member(object, name->get<std::string>());
        };
      } else if (take(".")) {
        SLUICE_TRY(value, parse_member(std::move(value)));
      } else {
        return value;
      }
    }
  }

  Result<Evaluate> parse_member(Evaluate target) {
    const std::string name = parse_name();
    if (name.empty()) return expected("a name");
    if (!take("(")) {
      return Evaluate([=](const Scope& scope) -> Result<Value> {
        SLUICE_TRY(const Value object, target(scope));
        return member(object, name);
      });
    }
    if (name == "exists") return parse_exists(std::move(target));
    if (name != "matches" && name != "startsWith" && name != "compareTo" && name != "add")
      return expected("a known method");
    SLUICE_TRY(Evaluate argument, parse_or());
    if (!take(")")) return expected(")");
    return Evaluate([=](const Scope& scope) -> Result<Value> {
      SLUICE_TRY(const Value object, target(scope));
      SLUICE_TRY(const Value value, argument(scope));
      SLUICE_TRY(Json answer, method(name, *object, *value));
      return made(std::move(answer));
    });
  }

  Result<Evaluate> parse_exists(Evaluate target) {
    const std::string variable = parse_name();
    if (variable.empty() || !take(",")) return expected("variable,");
    SLUICE_TRY(Evaluate condition, parse_or());
    if (!take(")")) return expected(")");
    return Evaluate([variable, condition, target = std::move(target)](const Scope& scope) -> Result<Value> {
      SLUICE_TRY(const Value list, target(scope));
      std::optional<Error> failed;
      Scope inner = scope;
      for (const Json& element : *list) {
        inner[variable] = part_of(list, element);
        const Result<bool> found = truth(condition(inner));
        if (found.ok() && *found) return made(true);
        if (!found.ok()) failed = found.error();
      }
      if (failed) return *failed;
      return made(false);
    });
  }

  Result<Evaluate> parse_primary() {
    skip_space();
    if (at_ == text_.size()) return expected("an expression");
    const char first = text_[at_];
    if (take("(")) {
      SLUICE_TRY(Evaluate inner, parse_or());
      if (!take(")")) return expected(")");
      return inner;
    }
    if (first == '\'' || first == '"') return parse_text(first);
    if (first == '[') return parse_list();
    if (std::isdigit(static_cast<unsigned char>(first)) != 0) return parse_integer();
    const std::string name = parse_name();
    if (name.empty()) return expected("an expression");
    if (name == "true" || name == "false") return constant(Json(name == "true"));
    if (take("(")) return parse_call(name);
    mentions_old_self_ = mentions_old_self_ || name == "oldSelf";
    return Evaluate([=](const Scope& scope) -> Result<Value> {
      const auto found = scope.find(name);
      if (found == scope.end()) return cannot("unknown name " + name);
      return found->second;
    });
  }

  Result<Evaluate> parse_call(const std::string& name) {
    if (name != "has" && name != "size" && name != "string" && name != "quantity") return expected("a known function");
    SLUICE_TRY(Evaluate argument, parse_or());
    if (!take(")")) return expected(")");
    if (name == "has") return Evaluate([=](const Scope& scope) -> Result<Value> { return made(argument(scope).ok()); });
    return Evaluate([=](const Scope& scope) -> Result<Value> {
      SLUICE_TRY(const Value value, argument(scope));
      SLUICE_TRY(Json answer, call(name, *value));
      return made(std::move(answer));
    });
  }

  Result<Evaluate> parse_text(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return expected("the end of the text");
    const std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return constant(Json(text));
  }

  Result<Evaluate> parse_integer() {
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
    return constant(Json(value));
  }

  Result<Evaluate> parse_list() {
    take("[");
    std::vector<Evaluate> elements;
    while (!take("]")) {
      SLUICE_TRY(Evaluate element, parse_or());
      elements.push_back(std::move(element));
      take(",");
    }
    return Evaluate([=](const Scope& scope) -> Result<Value> {
      Json list = Json::array();
      for (const Evaluate& element : elements) {
        SLUICE_TRY(const Value value, element(scope));
        list.push_back(*value);
      }
      return made(std::move(list));
    });
  }

  static Result<Evaluate> constant(Json value) {
    return Evaluate([value = made(std::move(value))](const Scope&) -> Result<Value> { return value; });
  }

  std::string parse_name() {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool mentions_old_self_ = false;
};

}  // namespace

struct CelExpression::Node {
  Evaluate evaluate;
};

Result<CelExpression> CelExpression::parse(std::string_view text) {
  Parser parser(text);
  SLUICE_TRY(Evaluate root, parser.parse());
  CelExpression expression;
  expression.root_ = std::make_shared<const Node>(Node{std::move(root)});
  expression.mentions_old_self_ = parser.mentions_old_self();
  return expression;
}

Result<bool> CelExpression::holds(const Json& self, const Json* old_self) const {
  Scope scope{{"self", borrowed(self)}};
  if (old_self != nullptr) scope.emplace("oldSelf", borrowed(*old_self));
  return truth(root_->evaluate(scope));
}

}  // namespace sluice::kube::fake
