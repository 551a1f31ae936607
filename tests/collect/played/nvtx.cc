#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <thread>

#include "collect/played/scripts.h"

namespace played {

namespace {

nvtxEventAttributes_t attributes(const char* message) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

void nest() {
  const int outer = nvtxRangePushA("outer");
  const int inner = nvtxRangePushA("inner");
  nvtxRangePushW(L"b\u00e4r \u2192 \U0001F680");
  nvtxRangePop();
  const int left_inner = nvtxRangePop();
  const int left_outer = nvtxRangePop();
  // NVTX returns the level, from 0, which some programs use.
  std::printf("levels %d %d %d %d\n", outer, inner, left_inner, left_outer);
}

void cross_threads() {
  const nvtxRangeId_t id = nvtxRangeStartA("across threads");
  const nvtxRangeId_t other = nvtxRangeStartA("overlapping");
  std::printf("different ids %d\n", id != other);
  std::thread([id] { nvtxRangeEnd(id); }).join();
  nvtxRangeEnd(other);
}

void mark() {
  nvtxMarkA("a mark");
  nvtxEventAttributes_t event = attributes("a mark with a number");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = -42;
  nvtxMarkEx(&event);
}

void use_domains() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("data loading");
  nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "registered name");
  nvtxEventAttributes_t event = attributes(nullptr);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = name;
  event.category = 3;
  nvtxDomainNameCategoryA(domain, 3, "a category");
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff00ff00;
  nvtxRangePushA("in the default domain");
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainMarkEx(domain, &event);
  // Each domain nests for itself: the outer range may end first.
  nvtxRangePop();
  nvtxDomainRangePop(domain);
  const nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &event);
  nvtxDomainRangeEnd(domain, id);
}

/// Ranges shaped like NCCL's: schemas are registered once, and each range carries a structure.
struct AllReduce {
  std::uint64_t communicator;
  std::size_t bytes;
  std::uint32_t operation;
};

void tell_collectives() {
  constexpr std::uint64_t kOperations = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 11;
  constexpr std::uint64_t kAllReduce = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 2;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  const nvtxPayloadEnum_t values[] = {{"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}};
  nvtxPayloadEnumAttr_t operations{};
  operations.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  operations.entries = values;
  operations.numEntries = 3;
  operations.sizeOfEnum = sizeof(std::uint32_t);
  operations.schemaId = kOperations;
  nvtxPayloadEnumRegister(domain, &operations);
  const nvtxPayloadSchemaEntry_t entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0,
       offsetof(AllReduce, communicator), nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", nullptr, 0,
       offsetof(AllReduce, bytes), nullptr, nullptr},
      {0, kOperations, "Reduction operation", nullptr, 0, offsetof(AllReduce, operation), nullptr,
       nullptr}};
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 3;
  schema.payloadStaticSize = sizeof(AllReduce);
  schema.schemaId = kAllReduce;
  nvtxPayloadSchemaRegister(domain, &schema);
  nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "ncclAllReduce");
  const AllReduce call{0x1234'5678'9abc'def0, 25'000'000, 2};
  nvtxEventAttributes_t event = attributes(nullptr);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = name;
  NVTX_PAYLOAD_EVTATTR_SET(&event, kAllReduce, &call, sizeof call);
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
}

void misuse() {
  nvtxRangePop();  // There is nothing to pop.
  nvtxRangeEnd(0);
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  nvtxRangePushA("");
  nvtxRangePop();
  const std::string long_name(100'000, 'x');
  nvtxRangePushA(long_name.c_str());
  nvtxRangePop();
  nvtxRangePushA("not \xff\xfe UTF-8");
  nvtxRangePop();
}

}  // namespace

void push_range(const char* name) { nvtxRangePushA(name); }

void push_registered_range(const char* name) {
  static nvtxDomainHandle_t domain = nvtxDomainCreateA("training");
  nvtxEventAttributes_t event = attributes(nullptr);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, name);
  nvtxDomainRangePushEx(domain, &event);
}

void pop_registered_range() {
  static nvtxDomainHandle_t domain = nvtxDomainCreateA("training");
  nvtxDomainRangePop(domain);
}
void pop_range() { nvtxRangePop(); }

int play_nvtx(const Arguments& arguments) {
  nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "the main thread");
  nest();
  cross_threads();
  mark();
  use_domains();
  tell_collectives();
  if (!arguments.empty() && arguments[0] == "misuse") misuse();
  std::thread([] {
    nvtxRangePushA("on another thread");
    nvtxRangePop();
  }).join();
  nvtxRangePushA("never popped");
  return 0;
}

int play_late_range(const Arguments&) {
  push_range("in the program");
  pop_range();
  // Keys are destroyed in the order in which they were made; the recorder has made its key by now.
  static pthread_key_t key{};
  pthread_key_create(&key, [](void*) {
    usleep(300'000);  // clock: the range is kept, whether the log has been freed by then or not
    push_range("behind the end of the thread");
    pop_range();
  });
  std::thread([] {
    push_range("in the thread");
    pop_range();
    pthread_setspecific(key, &key);
  }).join();
  return 0;
}

}  // namespace played
