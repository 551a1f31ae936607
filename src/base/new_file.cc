#include "foretrace/new_file.h"

#include <sys/stat.h>

namespace foretrace {

void give_usual_rights(const std::string& path) {
  // The only way to read the mask is to set it.
  const ::mode_t mask = ::umask(0);
  ::umask(mask);
  static_cast<void>(::chmod(path.c_str(), 0666 & ~mask));
}

}  // namespace foretrace
