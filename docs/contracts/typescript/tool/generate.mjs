// Standard input: {"<name>": <JSON Schema>, …}. Standard output: {"<name>": "<TypeScript>", …}.
import { compile } from "json-schema-to-typescript";
import { readFileSync } from "node:fs";

const schemas = JSON.parse(readFileSync(0, "utf8"));
const types = {};
for (const [name, schema] of Object.entries(schemas)) {
  types[name] = await compile(schema, name, { bannerComment: "", additionalProperties: false });
}
process.stdout.write(JSON.stringify(types));
