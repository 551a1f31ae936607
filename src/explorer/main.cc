// The explorer's side of WebAssembly: one function that takes a question and gives an answer.

#include <string>

#include "explorer/questions.h"

/// `question` and the answer are JSON, see questions.h; the answer lasts until the next call.
extern "C" const char* foretrace_answer(const char* question) {
  static foretrace::Explorer explorer;
  static std::string answer;
  answer = explorer.answer(question);
  return answer.c_str();
}
