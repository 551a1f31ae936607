// The interface of the explorer's WebAssembly module: one function that answers a question.

#include <string>

#include "explorer/questions.h"

/// `question` and the answer are JSON; see questions.h. The answer stays valid until the next call.
extern "C" const char* foretrace_answer(const char* question) {
  static foretrace::Explorer explorer;
  static std::string answer;
  answer = explorer.answer(question);
  return answer.c_str();
}
