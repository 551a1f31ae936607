#include "document/forms/forms.h"

namespace foretrace {

const std::vector<DocumentForm>& document_forms() {
  static const std::vector<DocumentForm> forms = {
#define DOCUMENT(name, summary, file_help) {#name, summary, write_##name, file_help},
#include "document/forms/documents.def"
#undef DOCUMENT
  };
  return forms;
}

}  // namespace foretrace
