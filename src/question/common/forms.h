#pragma once

// The forms of a question's answers. An answer says what a person reads in document_of(answer), its
// facts in to_json(answer), and, if it has rows, write_csv(answer, out); all three belong to the
// header of the answer.

#include <concepts>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/question.h"
#include "question/common/answer_schema.h"

namespace foretrace {

#define QUESTION(name, summary) std::unique_ptr<Question> make_##name();
#include "question/questions.def"
#include "studies/questions.def"
#undef QUESTION

/// Indented JSON with a line break at the end.
template <class Json>
void print_json(const Json& value, std::ostream& out) {
  out << indented_json(value) << '\n';
}

/// The form "json" of answers that can be turned into JSON.
template <class Value>
Form json_form() {
  Form json = form<Value>(
      "json", [](const Value& value, std::ostream& out) { print_json(to_json(value), out); });
  json.schema = answer_schema<Value>;
  return json;
}

/// All forms that answers of this type have: those of documents, JSON, CSV if there are rows, and
/// "parts", which only the explorer asks for.
template <class Value>
std::vector<Form> forms_of() {
  std::vector<Form> all;
  const auto add = [&all](const DocumentForm& entry, bool is_printed) {
    all.push_back({.name = entry.name,
                   .write =
                       [write = entry.write](const Answer& answer, std::ostream& out) {
                         write(document_of(dynamic_cast<const AnswerOf<Value>&>(answer).value()),
                               out);
                       },
                   .file_help = std::string(entry.file_help),
                   .is_printed = is_printed});
  };
  for (const DocumentForm& entry : document_forms()) add(entry, entry.file_help.empty());
  add({"parts", "", write_parts, ""}, false);
  all.push_back(json_form<Value>());
  if constexpr (requires(const Value& value, std::ostream& out) { write_csv(value, out); })
    all.push_back(
        form<Value>("csv", [](const Value& value, std::ostream& out) { write_csv(value, out); }));
  return all;
}

/// Like forms_of(), with a page of its own that draws more than documents do.
template <class Value>
std::vector<Form> forms_with_page(std::string file_help,
                                  void (*write)(const Value& value, std::ostream& out)) {
  std::vector<Form> all = forms_of<Value>();
  for (Form& one : all) {
    if (one.name == "html") one = page_form(file_help, write);
  }
  return all;
}

}  // namespace foretrace
