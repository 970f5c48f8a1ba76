// Reads asyncapi.yaml as its standard wants it, and holds every frame of the vectors against the schema of its message.
import { readFile } from 'node:fs/promises'
import { Parser } from '@asyncapi/parser'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'

const file = (name) => readFile(new URL(`../${name}`, import.meta.url), 'utf8')
const faults = []
const check = (holds, fault) => holds || faults.push(fault)

const { document, diagnostics } = await new Parser().parse(await file('asyncapi.yaml'))
for (const { severity, code, message, path, range } of diagnostics) {
  // 0 is an error, 1 a warning; the others are advice.
  check(severity > 1, `asyncapi.yaml:${range.start.line + 1}: ${code}: ${message} (${path.join('/')})`)
}
if (!document) {
  console.error(faults.join('\n'))
  process.exit(1)
}

const ajv = addFormats(new Ajv({ strict: true, strictTypes: false }))
ajv.addVocabulary(['x-parser-schema-id'])
const validators = new Map()
for (const message of document.channels().get('websocket').messages()) {
  validators.set(message.id(), ajv.compile(message.payload().json()))
}

const used = new Set()
const accepts = (frame) => {
  const validate = validators.get(frame.op)
  used.add(frame.op)
  return validate ? validate(frame) || ajv.errorsText(validate.errors, { dataVar: 'frame' }) : `no message has the op ${frame.op}`
}

const { server, client } = JSON.parse(await file('vectors/frames.json'))
const frames = client.map(({ name, frame }) => ({ name: `client, ${name}`, frame }))
for (const { name, newer, text } of server) {
  const frame = JSON.parse(text)
  if (newer) check(accepts(frame) !== true, `server, ${name}: it is said to be newer, and is of the schema`)
  else frames.push({ name: `server, ${name}`, frame })
}
for (const { name, frame } of frames) {
  const accepted = accepts(frame)
  check(accepted === true, `${name}: ${accepted}`)
  // A schema that lets everything through would not be noticed otherwise.
  for (const member of validators.get(frame.op)?.schema.required ?? []) {
    const { [member]: _, ...rest } = frame
    check(accepts(rest) !== true, `${name}: it is of the schema without \`${member}\`, too`)
  }
}
for (const op of validators.keys()) check(used.has(op), `no vector has the op ${op}`)

console.log(`asyncapi.yaml and ${frames.length} frames: ${faults.length} faults`)
if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exit(1)
}
