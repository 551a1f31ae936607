#include "collect/spool/thread_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace foretrace::collect {

namespace {

/// Reads the name from /proc. Returns an empty text if the thread is gone.
std::string_view read_name(std::uint32_t thread, char (&room)[64]) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/comm", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, room, sizeof room);
  ::close(file);
  if (size <= 0) return {};
  std::string_view name(room, static_cast<std::size_t>(size));
  if (name.back() == '\n') name.remove_suffix(1);
  return name;
}

}  // namespace

void ThreadNames::write_new(SpoolWriter& writer) {
  texts_ = &writer.texts;
  const bool done =
      writer.files.run([] {}, [](void* self) { static_cast<ThreadNames*>(self)->read(); }, this,
                       FileThread::Timeout::recorder);
  if (!done) return;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!threads_[i].is_new) continue;
    threads_[i].is_new = false;
    spool::ThreadName row;
    row.thread = threads_[i].thread;
    row.name = threads_[i].name;
    writer.write_row(row);
  }
}

/// Runs on the file thread.
void ThreadNames::read() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* task = ::readdir(tasks)) {
    const auto thread = static_cast<std::uint32_t>(std::strtoul(task->d_name, nullptr, 10));
    if (thread == 0) continue;
    char room[64];
    if (const std::uint32_t name = texts_->number(read_name(thread, room))) note(thread, name);
  }
  ::closedir(tasks);
}

void ThreadNames::note(std::uint32_t thread, std::uint32_t name) {
  std::size_t i = 0;
  while (i < count_ && threads_[i].thread != thread) ++i;
  if (i == kMax || (i < count_ && threads_[i].name == name)) return;
  threads_[i] = {thread, name, true};
  if (i == count_) ++count_;
}

}  // namespace foretrace::collect
