"""One small, intact input of every kind that the program reads, made here or by the program itself."""

import gzip
import io
import json
import pickle
import pathlib
import sqlite3
import struct
import tarfile
import tempfile

STEPS = 3


def kineto_events():
    """Steps of a program that loads, copies, launches, waits and allocates."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}]
    add = lambda category, name, thread, begin, length, **arguments: events.append(
        {"ph": "X", "cat": category, "name": name, "pid": 1 if thread < 7 else 0, "tid": thread, "ts": begin, "dur": length,
         "args": arguments})
    correlation = 0
    for step in range(STEPS):
        at = 1000.5 + 200 * step
        add("user_annotation", f"ProfilerStep#{step}", 1, at, 199)
        add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, at + 1, 20)
        for op, name in enumerate(["aten::conv2d", "aten::relu", "Optimizer.step#SGD.step"]):
            begin = at + 30 + 40 * op
            correlation += 1
            add("cpu_op", name, 1, begin, 30, **{"Input Dims": [[4, 3], []], "Sequence number": correlation, "External id": op})
            events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1,
                           "ts": begin + 1, "args": {"Total Allocated": 4096 * (op + 1), "Total Reserved": 2097152,
                                                     "Bytes": 4096 if op < 2 else -8192, "Addr": 4096 * (op % 2 + 1),
                                                     "Device Id": 0, "Device Type": 1}})
            add("cuda_runtime", "cudaLaunchKernel", 1, begin + 5, 4, correlation=correlation)
            add("kernel", f"void gemm_{op}<float>", 7, begin + 12, 25, correlation=correlation, device=0, stream=7,
                grid=[4, 1, 1], block=[64, 1, 1])
        correlation += 1
        add("cuda_runtime", "cudaMemcpyAsync", 1, at + 155, 4, correlation=correlation)
        add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 7, at + 160, 6, correlation=correlation, device=0, stream=7,
            bytes=4096)
        correlation += 1
        add("cuda_runtime", "cudaStreamSynchronize", 1, at + 165, 12, correlation=correlation)
    return events


def kineto():
    return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB", "totalGlobalMem": 1 << 34}],
                       "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": kineto_events()}).encode()


def inspector():
    """A log of NCCL Inspector, with one all-reduce of two ranks."""
    return "".join(json.dumps({
        "header": {"id": "0x1", "comm_name": "DP", "rank": rank, "n_ranks": 2, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.2"},
        "coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": 30 + rank}}) + "\n" for rank in (0, 1))


def inspector_text():
    """Its text for Prometheus."""
    return "".join(f'nccl_{metric}{{gpu="GPU0",comm_name="DP",n_nodes="1",nranks="2",collective="AllReduce"}} {value}\n'
                   for metric, value in (("bus_bandwidth_gbs", 35.1), ("collective_exec_time_microseconds", 30)))


def packed(data, name="trace.json"):
    """A .tar.gz with one member."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


def database(sql):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.db"
        connection = sqlite3.connect(path)
        connection.executescript("PRAGMA page_size = 1024;" + sql)
        connection.close()
        return path.read_bytes()


def rpd():
    return database("""
        CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
        INSERT INTO rocpd_string VALUES (1,'hipLaunchKernel'),(2,'gemm'),(3,'KernelExecution'),(4,'hipMemcpyAsync'),(5,''),
          (6,'CopyHostToDevice'),(7,'UserMarker'),(8,'step 1');
        CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, "end", apiName_id, args_id);
        INSERT INTO rocpd_api VALUES (1,50,51,1000,1100,1,5),(2,50,51,1200,1300,4,5),(3,50,52,900,3000,7,8);
        CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, completionSignal, start, "end", description_id,
          opType_id);
        INSERT INTO rocpd_op VALUES (1,2,3,0,'',1500,1700,2,3),(2,2,1,0,'',1800,1900,5,6);
        CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id, op_id);
        INSERT INTO rocpd_api_ops VALUES (1,1,1),(2,2,2);
        CREATE TABLE rocpd_kernelapi (api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, kernelName_id);
        INSERT INTO rocpd_kernelapi VALUES (1,'0x0',10,2,1,64,1,1,2);
        CREATE TABLE rocpd_copyapi (api_ptr_id, stream, size, kind, sync, pinned);
        INSERT INTO rocpd_copyapi VALUES (2,'0x0',4096,1,0,0);""")


def rocpd():
    """A database with the tables of rocprofiler-sdk."""
    tables = {
        "string": ("id, string", "(1,'hipLaunchKernel'),(2,'HIP_RUNTIME_API_EXT'),(3,'MARKER_CORE_API'),(4,'step')"),
        "info_process": ("id, nid, pid", "(1,1,500)"),
        "info_thread": ("id, nid, pid, tid", "(1,1,1,501)"),
        "info_agent": ("id, nid, pid, type, absolute_index, name, product_name",
                       "(0,1,1,'CPU',0,'cpu','EPYC'),(1,1,1,'GPU',1,'gfx942','MI300X')"),
        "info_kernel_symbol": ("id, kernel_name, display_name", "(9,'gemm.kd','gemm<float>')"),
        "event": ("id, category_id, stack_id", "(1,2,77),(2,2,77),(3,3,78)"),
        "kernel_dispatch": ("id, kernel_id, event_id, grid_size_x, grid_size_y, grid_size_z, workgroup_size_x, workgroup_size_y,"
                            ' workgroup_size_z, start, "end", tid, pid, agent_id, queue_id, stream_id',
                            "(1,9,1,100,1,1,64,1,1,1500,1700,1,1,1,6,3)"),
        "memory_copy": ('id, size, event_id, name_id, src_agent_id, dst_agent_id, start, "end", tid, pid, queue_id, stream_id',
                        "(1,4096,2,4,0,1,1800,1900,1,1,6,3)"),
        "region": ('id, event_id, name_id, start, "end", tid, pid', "(1,1,1,1000,1100,1,1),(2,3,4,900,3000,1,1)"),
    }
    return database("".join(f'CREATE TABLE "rocpd_{name}_x" ({columns}); INSERT INTO "rocpd_{name}_x" VALUES {rows};'
                            for name, (columns, rows) in tables.items()))


def rocprof():
    kernel = {"kind": 11, "operation": 2, "thread_id": 5, "correlation_id": {"internal": 1, "external": 9}, "start_timestamp": 2000,
              "end_timestamp": 2500, "stream_id": {"handle": 4},
              "dispatch_info": {"agent_id": {"handle": 11}, "queue_id": {"handle": 3}, "kernel_id": 7,
                                "workgroup_size": {"x": 64, "y": 2, "z": 1}, "grid_size": {"x": 200, "y": 2, "z": 1}}}
    call = {"kind": 2, "operation": 1, "thread_id": 5, "correlation_id": {"internal": 1}, "start_timestamp": 1000, "end_timestamp": 1200}
    copy = {"kind": 9, "operation": 2, "thread_id": 5, "correlation_id": {"internal": 3}, "start_timestamp": 1500, "end_timestamp": 1900,
            "dst_agent_id": {"handle": 11}, "src_agent_id": {"handle": 10}, "bytes": 4096}
    tool = {"metadata": {"pid": 42, "init_time": 1},
            "agents": [{"id": {"handle": 10}, "type": 1, "name": "EPYC", "mem_banks": []},
                       {"id": {"handle": 11}, "type": 2, "name": "gfx942", "product_name": "MI300X", "cu_count": 304, "mem_banks": []}],
            "strings": {"buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HSA_CORE_API", "operations": ["hsa_init"]},
                                           {"kind": "HIP_RUNTIME_API", "operations": ["hipNone", "hipLaunchKernel"]}],
                        "callback_records": [], "marker_api": []},
            "kernel_symbols": [{"kernel_id": 7, "kernel_name": "k.kd", "formatted_kernel_name": "kernel<float>"}],
            "buffer_records": {"kernel_dispatch": [kernel], "memory_copy": [copy], "hip_api": [call]}}
    return json.dumps({"rocprofiler-sdk-tool": [tool]}).encode()


def snapshot():
    frames = [{"filename": "train.py", "line": 12, "name": "forward"}]
    happened = lambda action, address, size, time: {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time,
                                                   "frames": frames}
    base = 0x1000000
    events = [happened("segment_alloc", base, 20 << 20, 10), happened("alloc", base, 16 << 20, 11),
              happened("alloc", base + (16 << 20), 1 << 20, 12), happened("free_requested", base, 16 << 20, 14),
              happened("free_completed", base, 16 << 20, 15)]
    block = lambda address, size, state: {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames}
    segment = {"address": base, "total_size": 20 << 20, "stream": 0, "segment_type": "large", "device": 0, "segment_pool_id": (0, 0),
               "allocated_size": 1 << 20, "active_size": 1 << 20, "is_expandable": False, "frames": frames,
               "blocks": [block(base, 16 << 20, "inactive"), block(base + (16 << 20), 1 << 20, "active_allocated"),
                          block(base + (17 << 20), 3 << 20, "inactive")]}
    return pickle.dumps({"segments": [segment], "device_traces": [events], "allocator_settings": {}}, protocol=4)


def varint(value):
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def chakra():
    """Nodes, each after its length, in the second format of Chakra."""
    attribute = lambda name, value: text(10, text(1, name) + value)
    messages = [text(1, b"0.0.4")]
    for i in range(1, 9):
        on_device = i % 2 == 0
        node = number(1, i) + text(2, b"gemm" if on_device else b"aten::mm") + number(3, 4) + (number(4, i - 1) if on_device else b"")
        node += number(6, 100 * i) + number(7, 80) + attribute(b"is_cpu_op", number(27, 0 if on_device else 1))
        node += attribute(b"stream", number(9, 7)) if on_device else attribute(b"tid", number(9, 5))
        messages.append(node)
    return b"".join(varint(len(message)) + message for message in messages)


def pytorch_et():
    empty = {"values": [], "shapes": [], "types": []}
    node = lambda identity, parent, name, **more: {
        "id": identity, "name": name, "ctrl_deps": parent, "inputs": empty, "outputs": empty,
        "attrs": [{"name": "rf_id", "type": "uint64", "value": identity + 100}, {"name": "tid", "type": "uint64", "value": 1}], **more}
    tensor = {"values": [[3, 4, 2, 6, 4, "cuda:0"]], "shapes": [[2, 3]], "types": ["Tensor(float)"]}
    nodes = [node(2, 1, "[pytorch|profiler|execution_trace|thread]"), node(3, 2, "aten::zeros", outputs=tensor), node(4, 3, "aten::empty"),
             node(5, 2, "aten::add", inputs=tensor)]
    return json.dumps({"schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": nodes}).encode()


def xplane():
    """Two planes: a device with one stream and a host with one thread, with names behind the events that use them."""
    event = lambda name, start, stat: text(4, number(1, name) + number(2, start * 1000000) + number(3, 5000000) + text(4, stat))
    named = lambda field, key, name: text(field, number(1, key) + text(2, number(1, key) + text(2, name)))
    names = named(5, 1, b"correlation_id") + named(5, 2, b"step_num")
    planes = []
    for plane, line, work in ((b"/device:GPU:0", b"Stream #14(Compute)", b"fusion"), (b"/host:CPU", b"python", b"cuLaunchKernel")):
        events = b"".join(event(1, 10 * i, number(1, 1) + number(3, i)) for i in range(1, 9))
        marks = b"" if plane == b"/device:GPU:0" else event(2, 5, number(1, 2) + number(3, 1))
        planes.append(text(1, text(2, plane) + text(3, number(1, 14) + text(2, line) + marks + events) + named(4, 1, work) + named(4, 2, b"train") + names))
    return b"".join(planes)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def chunk(kind, count, body):
    head = struct.pack("<IHHIII", 0x4B4E4843, kind, 0, count, len(body), crc32c(body))
    return head + struct.pack("<I", crc32c(head)) + body


def spool():
    """A spool as src/import/spool reads it; src/trace/spool.h has the layout."""
    rows, texts, facts = 1, 2, 3
    kernel = lambda i: struct.pack("<HHIQQIIIIIIQ", 1, 0, i, 2000 * i + 500, 2000 * i + 1500, 1, 1, 7, 64, 256, 0, 0)
    call = lambda i: struct.pack("<HHIQQII", 3, 2, i, 2000 * i, 2000 * i + 400, 211, 42)
    name = struct.pack("<HHIII", 12, 2, 211, 2, 0)
    padded = lambda first, second, body: struct.pack("<II", first, second) + body + b"\0" * (-len(body) % 8)
    header = b"\x89FSPL\r\n\x1a" + struct.pack("<IIQQII", 1, 1, 50, 1, 0, 12) + struct.pack("<Q", 9)
    chunks = [chunk(texts, 1, padded(1, 4, b"gemm")), chunk(texts, 1, padded(2, 16, b"cudaLaunchKernel")),
              chunk(facts, 1, padded(4, 1, b"rank0")),
              chunk(rows, 1, name)]
    chunks += [chunk(rows, 2, kernel(i) + call(i)) for i in range(1, 5)]
    return header.ljust(4096, b"\0") + b"".join(chunks)


def of_every_importer(convert):
    """{importer: [(file name, bytes)]}; `convert(kineto, file name)` are the bytes that the program writes under that name."""
    job = kineto()
    return {
        "native": [("job.ftrace", convert(job, "job.ftrace"))],
        "spool": [("job.spool", spool())],
        "xplane": [("vm.xplane.pb", xplane())],
        "chakra": [("job.0.et", chakra())],
        "pytorch_et": [("et.json", pytorch_et())],
        "torch_memory": [("snapshot.pickle", snapshot()), ("snapshot.pickle.gz", gzip.compress(snapshot(), mtime=0))],
        "rocpd": [("results.db", rocpd()), ("trace.rpd", rpd())],
        "rocprof": [("results.json", rocprof())],
        "nsys": [("report.sqlite", convert(job, "report.sqlite"))],
        "perfetto": [("job.pftrace", convert(job, "job.pftrace"))],
        "kineto": [("job.json", job), ("job.json.gz", gzip.compress(job, mtime=0)), ("job.tar.gz", packed(job))],
    }
