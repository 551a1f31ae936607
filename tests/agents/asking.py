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
        lines = ['{"jsonrpc": "2.0", "id": -1, "method": "tools/list"}']
        lines += [json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                             "params": {"name": self.calls[key][0], "arguments": self.calls[key][1]}}) for number, key in enumerate(keys)]
        done = subprocess.run([self.program, "mcp", "--root", self.root, "--structured"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        listed, *answers = map(json.loads, done.stdout.splitlines())
        self.answers = {keys[one["id"]]: one["result"] for one in answers}
        schemas = {tool["name"]: tool.get("outputSchema") for tool in listed["result"]["tools"]}
        self.against_schema = [f"{tool}: {wrong}" for key, (tool, _) in self.calls.items() if "structuredContent" in self.answers[key]
                               for wrong in against_schema(self.answers[key]["structuredContent"], schemas[tool])]

    def answer(self, call):
        """The structured content of an answer, or its text where there is none. Raises Refused."""
        result = self.answers[key_of(call)]
        text = result["content"][0]["text"]
        if result["isError"]:
            raise Refused(text)
        return result["structuredContent"] if call[1].get("form") == "json" else text


TYPES = {"null": lambda one: one is None, "boolean": lambda one: isinstance(one, bool), "string": lambda one: isinstance(one, str),
         "integer": lambda one: isinstance(one, int) and not isinstance(one, bool), "array": lambda one: isinstance(one, list),
         "number": lambda one: isinstance(one, (int, float)) and not isinstance(one, bool), "object": lambda one: isinstance(one, dict)}


def against_schema(value, schema, path="$"):
    """Where a value is not what its schema says, or has properties that it does not name."""
    if "anyOf" in schema:
        return min((list(against_schema(value, one, path)) for one in schema["anyOf"]), key=len)
    if "const" in schema:
        return [] if value == schema["const"] else [f"{path} is {value}"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    wrong = [] if any(TYPES[one](value) for one in types) else [f"{path} is {value}, not {types}"]
    if isinstance(value, list):
        for item in value:
            wrong += against_schema(item, schema["items"], path + "[]") if "items" in schema else [path + " has items"]
    if isinstance(value, dict) and "object" in types:
        named = schema.get("properties", {})
        for key, part in value.items():
            inner = named.get(key, schema.get("additionalProperties"))
            wrong += against_schema(part, inner, f"{path}.{key}") if inner else [f"{path}.{key} is unknown"] if named else []
        wrong += [f"{path}.{key} is missing" for key in schema.get("required", []) if key not in value]
    return wrong


class Refused(Exception):
    pass


def key_of(call):
    return json.dumps(call, sort_keys=True)
