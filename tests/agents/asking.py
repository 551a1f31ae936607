"""A conversation with `foretrace mcp`: all questions about one recording are asked of one process, each call once."""

import json
import subprocess


class Agent:
    def __init__(self, program, root):
        self.program, self.root = program, root
        self.calls = {}

    def plan(self, calls):
        for call in calls:
            self.calls.setdefault(key_of(call), call)

    def ask(self):
        """Asks what was planned. Afterwards, answer() knows each."""
        keys = list(self.calls)
        lines = [json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                             "params": {"name": self.calls[key][0], "arguments": self.calls[key][1]}}) for number, key in enumerate(keys)]
        done = subprocess.run([self.program, "mcp", "--root", self.root], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        self.answers = {keys[one["id"]]: one["result"] for one in map(json.loads, done.stdout.splitlines())}

    def answer(self, call):
        """The structured content of an answer, or its text where there is none. Raises Refused."""
        result = self.answers[key_of(call)]
        text = result["content"][0]["text"]
        if result["isError"]:
            raise Refused(text)
        return result.get("structuredContent", text)


class Refused(Exception):
    pass


def key_of(call):
    return json.dumps(call, sort_keys=True)
