# The toolchain for a program that runs in a browser: Debian's emscripten, with a newer clang and the headers of a newer C++ library,
# because its own has no ranges. It compiles without emscripten's wrapper, which starts Python for each file; the wrapper links.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(FORETRACE_WASM ON)
set(wasm_llvm /usr/lib/llvm-16)
set(wasm_emscripten /usr/share/emscripten)
set(CMAKE_C_COMPILER ${wasm_llvm}/bin/clang)
set(CMAKE_CXX_COMPILER ${wasm_llvm}/bin/clang++)
set(CMAKE_AR ${wasm_llvm}/bin/llvm-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${wasm_llvm}/bin/llvm-ranlib CACHE FILEPATH "")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(wasm_flags "--target=wasm32-unknown-emscripten --sysroot=${wasm_emscripten}/cache/sysroot -D__EMSCRIPTEN__ -Xclang -iwithsysroot/include/compat")
set(CMAKE_C_FLAGS_INIT "${wasm_flags}")
set(CMAKE_CXX_FLAGS_INIT "${wasm_flags} -fwasm-exceptions -fno-threadsafe-statics -nostdinc++ -isystem ${CMAKE_CURRENT_LIST_DIR}/../src/explorer/wasm/libcxx -isystem ${wasm_llvm}/include/wasm32-wasi/c++/v1 -isystem ${CMAKE_CURRENT_LIST_DIR}/../src/explorer/wasm/headers")
file(WRITE ${CMAKE_BINARY_DIR}/emscripten.py
  "EMSCRIPTEN_ROOT = '${wasm_emscripten}'\nLLVM_ROOT = '${wasm_llvm}/bin'\nBINARYEN_ROOT = '/usr'\nNODE_JS = '/usr/bin/node'\nFROZEN_CACHE = True\nLLVM_ADD_VERSION = ''\nCLANG_ADD_VERSION = ''\n")
# A node that is not of Debian does not look where Debian has its modules.
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs /usr/bin/em++ --em-config ${CMAKE_BINARY_DIR}/emscripten.py <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
