#include <gtest/gtest.h>
#include <sqlite3.h>

#include "foretrace/import.h"
#include "import/files.h"

namespace foretrace {
namespace {

/// The trace of a database that these statements make.
Trace read(const Folder& folder, const std::string& sql) {
  const std::string path = folder / "results.db";
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  char* wrong = nullptr;
  sqlite3_exec(database, ("PRAGMA synchronous = OFF;" + sql).c_str(), nullptr, nullptr, &wrong);
  EXPECT_EQ(wrong, nullptr) << wrong;
  sqlite3_free(wrong);
  sqlite3_close(database);
  return import_trace(path);
}

constexpr auto kRpd = R"(
  CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
  INSERT INTO rocpd_string VALUES (1,'hipLaunchKernel'),(2,'gemm'),(3,'KernelExecution'),
    (4,'hipMemcpyAsync'),(5,''),(6,'CopyHostToDevice'),(7,'UserMarker'),(8,'step 1'),
    (9,'Barrier'),(10,'hsa_init'),(11,'FillBuffer');
  CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, "end", apiName_id, args_id);
  INSERT INTO rocpd_api VALUES (1,50,51,1000,1100,1,5),(2,50,51,1200,1300,4,5),
    (3,50,52,900,3000,7,8),(4,50,51,950,960,10,5),(5,50,51,9,8,1,5);
  CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, completionSignal,
    start, "end", description_id, opType_id);
  INSERT INTO rocpd_op VALUES (21,2,3,0,'',1500,1700,2,3),(22,2,1,0,'',1800,1900,5,6),
    (23,2,1,0,'',1900,1900,5,9),(24,2,1,0,'',1950,1960,5,11);
  CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id, op_id);
  INSERT INTO rocpd_api_ops VALUES (1,1,21),(2,2,22);
)";

const std::string kRpdTrace =
    "runtime \"hipLaunchKernel\" 50/51 100+100 correlation=1\n"
    "runtime \"hipMemcpyAsync\" 50/51 300+100 correlation=2\n"
    "annotation \"step 1\" 50/52 0+2100\n"
    "driver \"hsa_init\" 50/51 50+10 correlation=4\n"
    "kernel \"gemm\" 2/3 600+200 correlation=1 grid=20 block=64\n"
    "copy \"CopyHostToDevice\" 2/1 900+100 in bytes=4096 correlation=2\n"
    "fill \"FillBuffer\" 2/1 1050+10\n"
    "! records with impossible times, left out: 1\n"
    "! operations that only wait for others, left out: 1\n";

TEST(Rocpd, ReadsRocmProfileData) {
  const Folder folder;
  const Trace trace = read(folder, std::string(kRpd) + R"(
    CREATE TABLE rocpd_kernelapi (api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY,
      workgroupZ, kernelName_id);
    INSERT INTO rocpd_kernelapi VALUES (1,'0x0',10,2,1,64,1,1,2);
    CREATE TABLE rocpd_copyapi (api_ptr_id, stream, size, kind, sync, pinned);
    INSERT INTO rocpd_copyapi VALUES (2,'0x0',4096,1,0,0);
    CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag, value);
    INSERT INTO rocpd_metadata VALUES (1,'schema_version','2');
  )");
  EXPECT_EQ(describe(trace), kRpdTrace);
  EXPECT_EQ(trace.format, "rpd");
  EXPECT_EQ(trace.metadata.at("schema_version"), "\"2\"");
}

TEST(Rocpd, ReadsDetailsThatBelongToOperationsAsTheFirstVersionHasThem) {
  const Folder folder;
  const Trace trace = read(folder, std::string(kRpd) + R"(
    CREATE TABLE rocpd_kernelop (op_ptr_id, gridX, gridY, gridz, workgroupX, workgroupY, workgroupZ);
    INSERT INTO rocpd_kernelop VALUES (21,10,2,1,64,1,1);
    CREATE TABLE rocpd_copyop (op_ptr_id, size, src, dst, sync, pinned);
    INSERT INTO rocpd_copyop VALUES (22,4096,0,1,0,0);
  )");
  EXPECT_EQ(describe(trace), kRpdTrace);
}

/// Tables of rocprofiler-sdk; the version decides in which table the times are.
std::string sdk(const std::string& guid, bool with_spine) {
  const auto table = [&](const std::string& name) { return "\"rocpd_" + name + guid + "\""; };
  const std::string when = with_spine ? "start_id, end_id, track_id" : "start, \"end\", tid";
  const auto times = [&](int start, int end, int track) {
    return std::to_string(start) + "," + std::to_string(end) + "," + std::to_string(track);
  };
  std::string sql = "CREATE TABLE " + table("string") +
                    " (id, string);"
                    "INSERT INTO " +
                    table("string") +
                    " VALUES (1,'hipLaunchKernel'),(2,'HIP_RUNTIME_API_EXT'),"
                    "(3,'MARKER_CORE_API'),(4,'step'),(5,'MEMORY_COPY_DEVICE_TO_HOST');"
                    "CREATE TABLE " +
                    table("info_process") +
                    " (id, nid, pid);"
                    "INSERT INTO " +
                    table("info_process") +
                    " VALUES (1,1,500);"
                    "CREATE TABLE " +
                    table("info_thread") +
                    " (id, nid, pid, tid);"
                    "INSERT INTO " +
                    table("info_thread") +
                    " VALUES (1,1,1,501);"
                    "CREATE TABLE " +
                    table("info_agent") +
                    " (id, nid, pid, type, absolute_index, name, product_name);"
                    "INSERT INTO " +
                    table("info_agent") +
                    " VALUES (0,1,1,'CPU',0,'cpu','EPYC'),(1,1,1,'GPU',1,'gfx942','MI300X');"
                    "CREATE TABLE " +
                    table("info_kernel_symbol") +
                    " (id, kernel_name, display_name);"
                    "INSERT INTO " +
                    table("info_kernel_symbol") +
                    " VALUES (9,'gemm.kd','gemm<float>');"
                    "CREATE TABLE " +
                    table("event") +
                    " (id, category_id, stack_id);"
                    "INSERT INTO " +
                    table("event") + " VALUES (1,2,77),(2,2,77),(3,3,78),(4,2,79);";
  if (with_spine) {
    sql += "CREATE TABLE " + table("timestamp") +
           " (id, value, track_id);"
           "INSERT INTO " +
           table("timestamp") +
           " VALUES (1000,1000,1),(1100,1100,1),(1500,1500,2),"
           "(1700,1700,2),(1800,1800,2),(1900,1900,2),(900,900,1),(3000,3000,1),(950,950,1),(960,"
           "960,1);"
           "CREATE TABLE " +
           table("track") +
           " (id, nid, pid, tid, agent_id, queue_id, stream_id);"
           "INSERT INTO " +
           table("track") + " VALUES (1,1,1,1,1,NULL,NULL),(2,1,1,1,1,6,3);";
  }
  const std::string rest = with_spine ? "" : ", pid, agent_id, queue_id, stream_id";
  const std::string where = with_spine ? "" : ",1,1,6,3";
  sql +=
      "CREATE TABLE " + table("kernel_dispatch") +
      " (id, kernel_id, event_id, grid_size_x, grid_size_y,"
      " grid_size_z, workgroup_size_x, workgroup_size_y, workgroup_size_z, " +
      when + rest +
      ");"
      "INSERT INTO " +
      table("kernel_dispatch") + " VALUES (1,9,2,640,2,1,64,1,1," +
      times(1500, 1700, with_spine ? 2 : 1) + where +
      ");"
      "CREATE TABLE " +
      table("memory_copy") + " (id, name_id, event_id, src_agent_id, dst_agent_id, size, " + when +
      rest +
      ");"
      "INSERT INTO " +
      table("memory_copy") + " VALUES (1,5,4,1,0,256," + times(1800, 1900, with_spine ? 2 : 1) +
      where +
      ");"
      "CREATE TABLE " +
      table("region") + " (id, name_id, event_id, " + when + (with_spine ? "" : ", pid") +
      ");"
      "INSERT INTO " +
      table("region") + " VALUES (1,1,1," + times(1000, 1100, 1) + (with_spine ? "" : ",1") +
      "),"
      "(2,4,3," +
      times(900, 3000, 1) + (with_spine ? "" : ",1") +
      ");"
      "CREATE TABLE " +
      table("memory_allocate") + " (id, type, size, address, event_id, " + when + rest +
      ");"
      "INSERT INTO " +
      table("memory_allocate") + " VALUES (1,'ALLOC',512,4096,NULL," + times(950, 960, 1) + where +
      "),"
      "(2,'FREE',0,4096,NULL," +
      times(1000, 1100, 1) + where + "),(3,'FREE',0,5,NULL," + times(1000, 1100, 1) + where + ");";
  return sql;
}

const std::string kSdkTrace =
    "runtime \"hipLaunchKernel\" 500/501 100+100 correlation=77\n"
    "annotation \"step\" 500/501 0+2100\n"
    "kernel \"gemm<float>\" 0/3 600+200 correlation=77 grid=20 block=64\n"
    "copy \"MEMORY_COPY_DEVICE_TO_HOST\" 0/3 900+100 out bytes=256 correlation=79\n"
    "memory device=0 50 bytes=512 address=4096\n"
    "memory device=0 100 bytes=-512 address=4096\n"
    "! frees of memory whose allocation was not recorded: 1\n";

TEST(Rocpd, ReadsTheDatabaseOfRocprofilerSdk) {
  const Folder folder;
  const Trace trace = read(folder, sdk("_0199d3a2_1b", false));
  EXPECT_EQ(describe(trace), kSdkTrace);
  EXPECT_EQ(trace.format, "rocpd");
  EXPECT_EQ(trace.properties.at(0).name, "MI300X");
}

TEST(Rocpd, ReadsTimesOutOfATableOfTheirOwn) {
  const Folder folder;
  EXPECT_EQ(describe(read(folder, sdk("", true))), kSdkTrace);
}

TEST(Rocpd, ReadsOneOfSeveralMergedRecordingsAndSaysSo) {
  const Folder folder;
  const Trace trace = read(folder, sdk("_a", false) + sdk("_b", true));
  EXPECT_EQ(trace.devices.size(), 2U);
  EXPECT_EQ(trace.notes.count("recordings of several runs in one file; only the first was read"),
            2);
}

TEST(Rocpd, RefusesADatabaseWithoutRecords) {
  const Folder folder;
  const std::string message =
      failure([&] { read(folder, "CREATE TABLE rocpd_string (id, string);"); });
  EXPECT_EQ(message,
            folder / "results.db" + ": must contain kernels, copies or calls, but contains none");
}

/// The trace that is read, or the message of the error.
std::string result_of(const std::string& path) {
  std::string result;
  const std::string message = failure([&] { result = describe(import_trace(path)); });
  return message.empty() ? result : message;
}

TEST(Rocpd, SurvivesADamagedDatabase) {
  const Folder folder;
  read(folder, sdk("_a", false));
  const std::string whole = contents_of(folder / "results.db");
  int tried = 0, noticed = 0;
  for (std::size_t i = 100; i < whole.size(); i += 499) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0xff);
    // Most bytes of a small database belong to no row; a change of the others is noticed.
    noticed += result_of(folder.write("damaged.db", bytes)) != kSdkTrace ? 1 : 0;
    ++tried;
    EXPECT_NE(result_of(folder.write("cut.db", whole.substr(0, i))), kSdkTrace) << i;
  }
  EXPECT_GT(noticed, tried / 20) << tried;
}

}  // namespace
}  // namespace foretrace
