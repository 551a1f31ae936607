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
    fields.flag("structured", is_structured_,
                "Declare schemas of the answers, and send all JSON with each; it is two to forty "
                "times as long as the text");
  }

  void run(Invocation& invocation) override {
    std::error_code error;
    std::filesystem::current_path(root_, error);
    if (error)
      throw Error(fmt::format("--root: must be a folder, got '{}': {}", root_, error.message()));
    serve_tools(std::cin, invocation.out, std::filesystem::current_path().string(), is_structured_);
  }

 private:
  std::string root_ = ".";
  bool is_structured_ = false;
};

}  // namespace

std::unique_ptr<Command> make_mcp_command() { return std::make_unique<McpCommand>(); }

}  // namespace foretrace
