#include <filesystem>
#include <fmt/core.h>
#include <iostream>

#include "cli/mcp/server.h"
#include "cli/options/options.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

struct McpCommand {
  std::string root = ".";

  void add_to(CLI::App& command) {
    command.add_option("--root", root, "Open only files in this folder")
        ->type_name("FOLDER")
        ->capture_default_str();
  }

  void run(Session& session) const {
    std::error_code error;
    std::filesystem::current_path(root, error);
    if (error)
      throw Error(fmt::format("--root: must be a folder, got '{}': {}", root, error.message()));
    serve_tools(std::cin, session.out, std::filesystem::current_path().string());
  }
};

}  // namespace

void add_mcp(CLI::App& command, Session& session) { add_command<McpCommand>(command, session); }

}  // namespace foretrace
