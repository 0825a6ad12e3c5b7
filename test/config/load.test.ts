import { describe, expect, it } from 'vitest';
import { requireSecrets } from '../../src/config/config.ts';
import { loadConfig, resolveConfig } from '../../src/config/load.ts';
import { configKeys } from '../../src/config/keys.ts';
import { BASE, failure, parse, temporaryFile } from './helpers.ts';

const zeros = (bytes: number): string => Buffer.alloc(bytes).toString('base64');

describe('values', () => {
  it('fills in every default, durations in ms and sizes in bytes', () => {
    const { config, warnings } = parse(BASE);
    expect(config.server).toMatchObject({
      host: '0.0.0.0',
      port: 8080,
      path: '/webhooks',
      maxBodyBytes: 10 * 2 ** 20,
    });
    expect(config.server).toMatchObject({
      keepAliveTimeout: 65_000,
      maxHeaderBytes: 16_384,
      retryAfter: 10_000,
    });
    expect(config.admin).toEqual({ enabled: true, host: '127.0.0.1', port: 9090, token: null });
    expect(config.signing).toMatchObject({ scheme: 'standard-webhooks', secrets: [], tolerance: 300_000 });
    expect(config.envelope).toMatchObject({ type: 'event_type', teams: [], userIds: 'uuid', maxDepth: 128 });
    expect(config.envelope.require[0]).toEqual({ match: ['labtest.match_review.'], fields: ['team'] });
    expect(config.journal).toMatchObject({ retention: 604_800_000, maxBytes: 10 * 2 ** 30, maxBacklog: 0 });
    expect(config.quarantine.respond).toBe(202);
    expect(config.delivery).toMatchObject({
      retryInitial: 500,
      retryMax: 30_000,
      giveUpAfter: 0,
      maxPending: 5000,
    });
    expect(config.sinks['archive']).toEqual({
      type: 'files',
      oversize: 'dead-letter',
      claimCheck: null,
      continues: null,
      required: true,
      options: { path: './data/archive' },
    });
    expect(config.routes).toEqual([{ match: ['*'], to: [{ sink: 'archive', destination: null }] }]);
    expect(warnings).toEqual([]);
  });

  it('takes the environment over the file over the default', () => {
    const text = `server: { port: 1111, maxBodyBytes: 5MB }\n${BASE}`;
    expect(parse(text).config.server.port).toBe(1111);
    const env = {
      MILLRACE_SERVER_PORT: '2222',
      MILLRACE_QUARANTINE_RESPOND: '422',
      MILLRACE_ENVELOPE_TEAMS: 'a, b',
    };
    const { config } = parse(text, env);
    expect(config.server).toMatchObject({ port: 2222, maxBodyBytes: 5_000_000 });
    expect(config.quarantine.respond).toBe(422);
    expect(config.envelope.teams).toEqual(['a', 'b']);
  });

  it('ignores empty variables: an empty token would open the admin listener', () => {
    expect(parse(BASE, { MILLRACE_ADMIN_TOKEN: '', MILLRACE_SERVER_PORT: '' }).config.admin.token).toBeNull();
  });

  it('takes empty sections for absent ones', () => {
    expect(parse(`server:\nsigning:\nroutes:\n${BASE}`).config.server.port).toBe(8080);
  });

  it('gives every scalar a variable of its own', () => {
    const names = configKeys().scalars.map((scalar) => scalar.env);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('MILLRACE_SIGNING_HMAC_TIMESTAMP_HEADER');
  });
});

describe('the file', () => {
  it('is found by option, then MILLRACE_CONFIG', () => {
    const file = temporaryFile('mine.yaml', BASE);
    expect(loadConfig({ file, env: { MILLRACE_CONFIG: '/nowhere.yaml' } }).file).toBe(file);
    expect(loadConfig({ env: { MILLRACE_CONFIG: file } }).file).toBe(file);
  });

  it('is named when it cannot be read', () => {
    expect(() => loadConfig({ file: '/nowhere.yaml', env: {} })).toThrow(
      expect.objectContaining({ code: 'config_missing', detail: expect.stringContaining('/nowhere.yaml') }),
    );
  });

  it('has its syntax errors named by line and column', () => {
    expect(failure('server: { port: 1\nsinks: }').lines[0]).toMatch(/^c\.yaml:\d+:\d+: /);
    expect(failure(`log: { level: info }\nlog: { level: warn }\n${BASE}`)).toEqual({
      code: 'config_invalid',
      lines: [expect.stringMatching(/^c\.yaml:2:1: .*unique/)],
    });
  });

  it('must be a mapping', () => {
    expect(failure('- a\n- b').lines[0]).toContain('must be a mapping');
  });
});

const continuing = (old: string): string =>
  `sinks: { a: { type: stdout }, b: { type: stdout, continues: ${old} }, c: { type: stdout, continues: old } }`;

describe('problems', () => {
  it('are all reported at once, with their places', () => {
    const text = [
      'server: { port: 99999, maxBodyBytes: lots, path: webhooks }',
      'quarantine: { respond: 500 }',
      'admin: { host: 0.0.0.0 }',
      'sinks: { Archive: { type: files }, plain: { typ: files } }',
      'routes: [{ match: daily.*, to: archive }]',
    ].join('\n');
    const { code, lines } = failure(text);
    expect(code).toBe('config_invalid');
    expect(lines).toEqual([
      'c.yaml:1:17: server.port: must be at most 65535',
      'c.yaml:1:50: server.path: must start with / and hold no ? or #',
      'c.yaml:1:38: server.maxBodyBytes: must be a size such as 64KiB, 10MB or 1GiB',
      'c.yaml:2:24: quarantine.respond: must be one of 202, 422',
      expect.stringMatching(/^c\.yaml:4:\d+: sinks\.Archive: is not a name for a sink/),
      expect.stringMatching(/^c\.yaml:4:\d+: sinks\.plain\.type: must be a type of sink/),
      expect.stringMatching(/^c\.yaml:5:\d+: routes\[0\]\.match\[0\]: is a plain prefix: write "daily\."/),
      'c.yaml:3:8: admin.token: must be set, because admin.host 0.0.0.0 can be reached by other machines',
    ]);
  });

  it('say what to use instead of a key that is gone, in the file and in a variable', () => {
    expect(failure(`server: { workers: 2 }\n${BASE}`).lines).toEqual([
      expect.stringMatching(/^c\.yaml:1:20: server\.workers: is no longer a key; start several receivers /),
    ]);
    const env = {
      MILLRACE_SERVER_WORKERS: '2',
      MILLRACE_SERVICE_IDEMPOTENCY_HEADER: 'x',
      MILLRACE_SERVICE_PATHS_CREATE_PARSING_JOB: '/x',
      MILLRACE_JOURNAL_ENCRYPT_MASTER_KEY: 'x',
    };
    expect(parse(BASE, env).warnings).toEqual([
      expect.stringMatching(/^MILLRACE_SERVER_WORKERS is no longer a key; start several receivers /),
      expect.stringMatching(/^MILLRACE_SERVICE_IDEMPOTENCY_HEADER is no longer a key; no command uses /),
      expect.stringMatching(/^MILLRACE_SERVICE_PATHS_CREATE_PARSING_JOB is no longer a key; no command /),
      expect.stringMatching(/^MILLRACE_JOURNAL_ENCRYPT_MASTER_KEY is no longer a key; the topics are not /),
    ]);
  });

  it('name the variable when the environment is to blame', () => {
    expect(failure(BASE, { MILLRACE_SERVER_PORT: 'tcp://10.0.0.1:80' }).lines).toEqual([
      'MILLRACE_SERVER_PORT (server.port): must be a port',
    ]);
  });

  it.each([
    ['server: { prot: 1 }', 'server.prot: is not a known key; did you mean server.port?'],
    ['sever: { port: 1 }', 'sever: is not a known key; did you mean server?'],
    ['port: 1', 'port: is not a known key; did you mean server.port?'],
    [
      'service: { paths: { createOrder: /x } }',
      'service.paths.createOrder: is no longer a key; no command uses',
    ],
    ['journal: { type: kafka, encrypt: { store: keys } }', 'is no longer a key; the topics are not sealed'],
    ['receipts: { witnesses: [w] }', 'is no longer a key; the signed log stands for itself'],
    ['signing: { secret: x }', 'signing.secret: is not a known key; did you mean signing.secrets?'],
    [
      'signing: { hmac: { heador: x } }',
      'signing.hmac.heador: is not a known key; did you mean signing.hmac.header?',
    ],
    [
      'routes: [{ mach: "*", to: archive }]',
      'routes[0].mach: is not a known key; did you mean routes[0].match?',
    ],
    ['envelope: { require: [{ match: "*", feilds: [] }] }', 'did you mean envelope.require[0].fields?'],
    ['__proto__: { a: 1 }', '__proto__: is not a known key'],
    ['service: { resources: { sleep: { pathe: /x } } }', 'did you mean service.resources.sleep.path?'],
    ['service: { resources: { sleep: { path: /x } } }', 'service.resources.sleep.path: must start with /'],
    ['service: { resources: { sleep: { table: sleeps } } }', 'service.resources.sleep.table: must be one of'],
    ["service: { resources: { x: { path: '/{user_id}' } } }", 'service.resources.x.table: is needed'],
    ['service: { resources: { X: { table: sleep } } }', 'service.resources.X: is not a name of a resource'],
    ['service: { resources: { sleep: { pages: two } } }', 'pages: must be one of none, cursor'],
  ])('%s: %s', (line, expected) => {
    expect(failure(`${line}\n${BASE}`).lines.join('\n')).toContain(expected);
  });

  it('say what to use instead of an option of a sink that is gone', async () => {
    const file = temporaryFile('c.yaml', 'sinks: { a: { type: files, path: a, format: parquet } }');
    await expect(resolveConfig({ file, env: {} })).rejects.toThrow(
      'sinks.a.format: is no longer a key; the archive is NDJSON: before the update, replay',
    );
  });

  it.each([
    ['server: { port: 12abc }', 'server.port: must be a port'],
    ['server: { port: }', 'server.port: must be a port'],
    ['server: { port: { a: 1 } }', 'server.port: must be a single value'],
    ['server: 8080', 'server: must be a mapping'],
    ['admin: { enabled: no }', 'admin.enabled: must be true or false'],
    ['admin: { token: 12345 }', 'admin.token: must be text'],
    ['admin: { token: "" }', 'admin.token: must be at least 16 characters'],
    ['admin: { token: made-up-token-1 }', 'admin.token: must be at least 16 characters'],
    [`signing: { secrets: [whsec_${zeros(23)}] }`, 'signing.secrets[0]: holds a key of 23 bytes'],
    [`signing: { secrets: [${zeros(24)}, ${zeros(16)}] }`, 'signing.secrets[1]: holds a key of 16 bytes'],
    ['signing: { scheme: hmac, secrets: [made-up] }', 'signing.secrets[0]: holds a key of 7 bytes'],
    // The record of a larger one would not be read.
    ['server: { maxBodyBytes: 17MiB }', 'c.yaml:1:25: server.maxBodyBytes: must be at most 16MiB'],
    ['log: { level: loud }', 'log.level: must be one of trace'],
    ['shutdown: { deadline: 30 }', 'shutdown.deadline: 30 is 30 ms: write 30s'],
    ['journal: { retention: "7" }', 'journal.retention: 7 is 7 ms: write 7s'],
    ['server: { headersTimeout: 0 }', 'server.headersTimeout: must be at least 1ms'],
    ['admin: { host: 0.0.0.0 }', 'admin.token: must be set'],
    ['admin: { port: 8080 }', 'admin.port: must differ from server.port'],
    ['signing: { scheme: none }', 'signing.insecure: must be true'],
    [
      'signing: { scheme: hmac, hmac: { content: "{id}", idHeader: x } }',
      'signing.hmac.content: must hold {body}',
    ],
    ['signing: { scheme: hmac, hmac: { content: "{body}", timestampHeader: x } }', 'must hold {timestamp}'],
    [
      'signing: { scheme: hmac, hmac: { header: x, content: "{id}.{body}" } }',
      'signing.hmac.idHeader: must be set',
    ],
    ['signing: { scheme: hmac, hmac: { idHeader: x-id } }', 'signing.hmac.idHeader: must be signed'],
    ['delivery: { retryInitial: 1m }', 'delivery.retryInitial: must not be longer'],
    ['signing: { secrets: "one" }', 'signing.secrets: must be a list'],
    ['signing: { secrets: [""] }', 'signing.secrets[0]: must not be empty'],
    ['signing: { secrets: [7] }', 'signing.secrets[0]: must be a secret, or a mapping with secret and teams'],
    [
      `signing: { secrets: [{ secret: ${zeros(24)}, teams: [] }] }`,
      'signing.secrets[0].teams: must name a team',
    ],
    [
      `signing: { secrets: [{ secret: ${zeros(24)}, team: [x] }] }`,
      'signing.secrets[0]: must be a secret, or',
    ],
    [
      `signing: { secrets: [{ secret: ${zeros(16)}, teams: [x] }] }`,
      'signing.secrets[0]: holds a key of 16 bytes',
    ],
  ])('%s: %s', (line, expected) => {
    expect(failure(`${line}\n${BASE}`).lines.join('\n')).toContain(expected);
  });

  it.each([
    [continuing('a'), 'sinks.b.continues: names a, which is still in the config'],
    [continuing('old'), 'sinks.c.continues: names old, as sinks.b.continues'],
    ['log: { level: info }', 'c.yaml: sinks: must name at least one sink'],
  ])('of the sinks together: %s', (text, expected) => {
    expect(failure(text).lines.join('\n')).toContain(expected);
  });

  it('never quote a secret', () => {
    const text = `admin: { token: "two words" }\nserver: { port: "\${PORT}" }\n${BASE}`;
    expect(failure(text, { PORT: 'hunter2' }).lines.join('\n')).not.toMatch(/hunter2|two words/);
  });
});

describe('warnings', () => {
  it('point at what is allowed but risky', () => {
    const text = `signing: { scheme: none, insecure: true }\njournal: { dedupWindow: 1h }\nserver: { answerTimeout: 20s }\n${BASE}`;
    const warnings = parse(text).warnings.join('\n');
    expect(warnings).toContain('signing.scheme: is none');
    expect(warnings).toContain('journal.dedupWindow: is below 28h');
    expect(warnings).toContain('server.answerTimeout: is not below 15s');
    expect(warnings).not.toContain('erasure.grace');
    expect(parse(`${text}\nerasure: { grace: 0 }`).warnings.join('\n')).not.toContain('erasure.grace');
    expect(parse(`${text}\nerasure: { grace: 7ms }`).warnings.join('\n')).toContain('erasure.grace: is 7ms');
  });

  it('name variables that are probably misspelt', () => {
    const env = { MILLRACE_SERVER_PROT: '1', MILLRACE_SECRET: 'x', MILLRACE_CONFIG: 'y', HOME: '/' };
    expect(parse(BASE, env).warnings).toEqual([
      'MILLRACE_SERVER_PROT is not a known setting; did you mean MILLRACE_SERVER_PORT?',
    ]);
  });
});

describe('requireSecrets', () => {
  it('refuses a scheme without its secret', () => {
    expect(() => requireSecrets(parse(BASE).config)).toThrow(
      expect.objectContaining({ code: 'secret_missing' }),
    );
    expect(() =>
      requireSecrets(parse(`signing: { secrets: ["${zeros(24)}"] }\n${BASE}`).config),
    ).not.toThrow();
    expect(() =>
      requireSecrets(parse(`signing: { scheme: none, insecure: true }\n${BASE}`).config),
    ).not.toThrow();
  });
});
