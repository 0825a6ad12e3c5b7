import { expect, it } from 'vitest';
import { BASE, failure } from './helpers.ts';

/** A broken config, and what is said of it: exactly, but for the name of the file. */
const BROKEN: readonly (readonly [text: string, ...lines: string[]])[] = [
  // YAML that says something else than was meant.
  ['routes: [{ match: *, to: archive }]', '1:19: a value that begins with * must be in quotes'],
  ['routes: [{ match: *daily, to: archive }]', '1:19: *daily names no anchor: put the value in quotes'],
  [
    'signing: { secrets: [${MILLRACE_SECRET}] }',
    '1:23: Missing , or : between flow sequence items: put the value in quotes',
  ],
  [
    'admin: { token: @env }',
    '1:17: Plain value cannot start with reserved character @: put the value in quotes',
  ],
  [
    'admin: { token: `x` }',
    '1:17: Plain value cannot start with reserved character `: put the value in quotes',
  ],
  [
    'server: { path: %20 }',
    '1:17: Plain value cannot start with directive indicator character %: put the value in quotes',
  ],
  ['log: level: info', '1:6: Nested mappings are not allowed in compact mappings: put the value in quotes'],
  ['log: { level: !loud info }', '1:15: Unresolved tag: !loud: put the value in quotes'],
  [
    'tables: [ a: b: c ]',
    '1:14: Block collections are not allowed within flow collections: put the value in quotes',
  ],
  ['server: > /x', '1:11: Not a YAML token: /x: put the value in quotes'],
  [
    String.raw`server: { path: "C:\hooks" }`,
    String.raw`1:20: Invalid escape sequence \h: put the value in single quotes`,
  ],
  // YAML that is broken in another way.
  ['server: { path: "/hooks }', '4:1: Missing closing "quote'],
  ['server:\n\tport: 1', '2:1: Tabs are not allowed as indentation'],
  [
    'log: { level: info }\nlog: { level: warn }',
    '2:1: log: keys must be unique, and this one is there already',
  ],
  ["log: { 'a b': 1, 'a b': 2 }", '1:18: a b: keys must be unique, and this one is there already'],
  ['log: { level: info }\n---\nlog: 1', '2:1: another document begins here: only one is read'],
  ['log: { level: info, __proto__: 1 }', '1:21: __proto__: is not a known key'],
  ['- a', '3:1: Unexpected scalar at node end'],
  ['just text', '1:1: Implicit keys need to be on a single line'],
  // Values of another kind.
  ['server: { port: { a: 1 } }', '1:17: server.port: must be a single value'],
  ['server: { trustedProxies: -1 }', '1:27: server.trustedProxies: must be at least 0'],
  ['schema: maybe', '1:9: schema: must be a mapping of keys to values'],
  ['log: loud', '1:6: log: must be a mapping of keys to values'],
  ['storage: { azblob: 1 }', '1:20: storage.azblob: must be a mapping of keys to values'],
  ['admin: { enabled: yes }', '1:19: admin.enabled: must be true or false'],
  ['admin: { token: 12345 }', '1:17: admin.token: must be text (put it in quotes)'],
  ['envelope: { teams: [1] }', '1:21: envelope.teams[0]: must be text (put it in quotes)'],
  ['envelope: { maxDepth: 1 }', '1:23: envelope.maxDepth: must be at least 2'],
  ['acknowledge: maybe', '1:14: acknowledge: must be one of journaled, delivered'],
  [
    'journal: { retention: 7 days }',
    '1:23: journal.retention: must be a duration such as 500ms, 30s, 5m or 7d',
  ],
  ['journal: { maxBytes: 1KiB }', '1:22: journal.maxBytes: must be at least 1MiB'],
  ['erasure: { grace: soon }', '1:19: erasure.grace: must be a duration such as 500ms, 30s, 5m or 7d'],
  ['service: { baseUrl: ftp://x }', '1:21: service.baseUrl: must be an http or https URL'],
  ['signing: { hmac: { encoding: base32 } }', '1:30: signing.hmac.encoding: must be one of hex, base64'],
  // Keys, routes, sinks.
  [
    'storage: { s3: { regon: x } }',
    '1:25: storage.s3.regon: is not a known key; did you mean storage.s3.region?',
  ],
  [
    'routes: [{ match: daily.*, to: archive }]',
    '1:19: routes[0].match[0]: is a plain prefix: write "daily.", without a star',
  ],
  [
    'routes: [{ match: daily., to: nowhere }]',
    '1:31: routes[0].to[0]: names the sink "nowhere", which is not configured; configured are: archive',
  ],
  ['routes: { match: daily. }', '1:9: routes: must be a list'],
  ['routes: [daily.]', '1:10: routes[0]: must be a mapping with match and to'],
  [
    'routes: [{ to: archive }]',
    '1:10: routes[0].match: must be an event type prefix or "*", or a list of them',
  ],
  [
    'sinks: { a: { path: x } }',
    '1:13: sinks.a.type: must be a type of sink, or the path of your own sink module',
  ],
  [
    'sinks: { A: { type: stdout } }',
    '1:13: sinks.A: is not a name for a sink: use lower-case letters, digits and dashes, a letter first',
  ],
  ['sinks: [files]', '1:8: sinks: must be a mapping of names to sinks'],
  ['sources: { s: {} }', '1:15: sources.s.type: must be a type of source'],
  // Placeholders, and values that do not go together.
  [
    "signing: { secrets: ['${NO_SUCH}'] }",
    '1:22: signing.secrets[0]: needs the environment variable NO_SUCH, which is not set',
  ],
  [
    "signing: { secrets: ['${file:/no/such}'] }",
    "1:22: signing.secrets[0]: needs the file /no/such: ENOENT: no such file or directory, open '/no/such'",
  ],
  [
    "signing: { secrets: ['${A B}'] }",
    '1:22: signing.secrets[0]: holds "${A B}", which is not ${NAME} or ${file:/path}; write $${ for a literal ${',
  ],
  [
    'delivery: { retryInitial: 1m, retryMax: 1s }',
    '1:27: delivery.retryInitial: must not be longer than delivery.retryMax',
  ],
  [
    'proof: { trust: key }',
    '1:17: proof.trust: key is not a public key as printed by `millrace keys public`',
  ],
  ['receipts: { path: log }', '1:11: receipts.origin: must name the log, such as acme.example/events'],
  ['schema: { alertTo: toString }', '1:20: schema.alertTo: toString names no configured sink'],
  ['schema: { alertTo: nowhere }', '1:20: schema.alertTo: nowhere names no configured sink'],
];

it.each(BROKEN)('%s: %s', (text, ...lines) => {
  const whole = text.startsWith('sinks') ? text : `${text}\n${BASE}`;
  expect(failure(whole).lines).toEqual(lines.map((line) => `c.yaml:${line}`));
});
