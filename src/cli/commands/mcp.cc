#include <filesystem>
#include <fmt/core.h>
#include <iostream>

#include "cli/mcp/server.h"
#include "cli/options/command.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

class McpCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "FOLDER"})
        .path("root", root_, "Open only files in this folder; by default the current one");
  }

  void run(Invocation& invocation) override {
    std::error_code error;
    std::filesystem::current_path(root_, error);
    if (error)
      throw Error(fmt::format("--root: must be a folder, got '{}': {}", root_, error.message()));
    serve_tools(std::cin, invocation.out, std::filesystem::current_path().string());
  }

 private:
  std::string root_ = ".";
};

}  // namespace

std::unique_ptr<Command> make_mcp_command() { return std::make_unique<McpCommand>(); }

}  // namespace foretrace
