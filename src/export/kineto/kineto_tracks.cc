#include "export/kineto/kineto_tracks.h"

#include <algorithm>
#include <set>

namespace foretrace {
namespace {

constexpr std::int64_t kSyncTracks = 1'000'000'000;
constexpr std::int64_t kDevicesLast = 5'000'000;  ///< As PyTorch's profiler sorts them.

class Tracks {
 public:
  Tracks(const Trace& trace, KinetoFile& file) : trace_(trace), file_(file) {
    for (const Thread& thread : trace.threads) {
      threads_.insert({thread.process, thread.id});
      processes_.insert(thread.process);
      // Readers take the name of a process for that of its thread 0.
      if (thread.id == 0 && thread.name.empty()) nameless_.insert(thread.process);
    }
  }

  void write() {
    for (const std::int64_t process : processes_)
      write_process(process, "process " + std::to_string(process), "CPU", process);
    for (const Thread& thread : trace_.threads) {
      if (!thread.name.empty())
        file_.name_thread({thread.process, thread.id}, thread.name, thread.id);
    }
    std::set<std::int64_t> devices;
    for (const Stream& stream : trace_.streams) devices.insert(stream.device);
    for (const std::int64_t device : devices) {
      // A process may have the number of a device.
      if (processes_.count(device) > 0) continue;
      write_process(device, label_of(device), "GPU " + std::to_string(device),
                    kDevicesLast + device);
    }
    for (const Stream& stream : trace_.streams) {
      const std::string label = "stream " + std::to_string(stream.id);
      name({stream.device, stream.id}, label, stream.id);
    }
    write_sync_names();
  }

 private:
  void write_process(std::int64_t process, const std::string& name, const std::string& label,
                     std::int64_t position) {
    const Track track{process, 0};
    if (nameless_.count(process) == 0)
      file_.describe("process_name", track, "name", json_string(name));
    file_.describe("process_labels", track, "labels", json_string(label));
    file_.describe("process_sort_index", track, "sort_index", std::to_string(position));
  }

  void name(Track track, const std::string& label, std::int64_t position) {
    if (threads_.count(track) == 0) file_.name_thread(track, label, position);
  }

  void write_sync_names() {
    std::set<Track> named;
    for (const SyncRecord& record : trace_.syncs) {
      if (record.stream == kNone) continue;
      const Stream& stream = trace_.streams[record.stream];
      const Track track = sync_track(stream.device, stream.id);
      if (named.insert(track).second)
        name(track, "stream " + std::to_string(stream.id) + " (sync)", stream.id);
    }
  }

  std::string label_of(std::int64_t device) const {
    for (const Device& known : trace_.properties) {
      if (known.ordinal == device && !known.name.empty()) return known.name;
    }
    return "GPU " + std::to_string(device);
  }

  const Trace& trace_;
  KinetoFile& file_;
  std::set<Track> threads_;
  std::set<std::int64_t> processes_, nameless_;
};

}  // namespace

Track sync_track(std::int32_t device, std::int64_t stream) {
  return {device, kSyncTracks + stream};
}

void write_kineto_tracks(const Trace& trace, KinetoFile& file) { Tracks(trace, file).write(); }

}  // namespace foretrace
