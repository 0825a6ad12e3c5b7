import { describe, expect, it } from 'vitest';
import { printable } from '../../src/config/print.ts';
import { BASE, failure, parse, temporaryFile } from './helpers.ts';

const SECRET = 'signing: { secrets: ["${MILLRACE_SECRET}"] }\n';

describe('${NAME}', () => {
  it('stands for a variable, also inside longer text, and is coerced like any text', () => {
    const text = `server: { port: "\${PORT}", maxBodyBytes: "\${N}MiB" }\nadmin: { enabled: "\${ON}" }\n${BASE}`;
    const { config } = parse(text, { PORT: '81', N: '3', ON: 'false' });
    expect(config.server).toMatchObject({ port: 81, maxBodyBytes: 3 * 2 ** 20 });
    expect(config.admin.enabled).toBe(false);
  });

  it('cannot add keys, because it is replaced after parsing', () => {
    const text = 'sinks: { archive: { type: files, path: "${P}" } }';
    const { config } = parse(text, { P: 'x }\nadmin: { token: y }' });
    expect(config.sinks['archive']?.options).toEqual({ path: 'x }\nadmin: { token: y }' });
  });

  it('is not replaced in keys, nor twice', () => {
    expect(failure('sinks: { "${A}": { type: files } }', { A: 'archive' }).lines[0]).toContain(
      'not a name for a sink',
    );
    const { config } = parse(`signing: { secrets: ["\${A}"] }\n${BASE}`, { A: '${B}', B: 'x' });
    expect(config.signing.secrets).toEqual(['${B}']);
  });

  it('is written literally with $${', () => {
    const { config, substituted } = parse(`signing: { secrets: ["a$\${B}c"] }\n${BASE}`);
    expect(config.signing.secrets).toEqual(['a${B}c']);
    expect([...substituted]).toEqual([]);
  });

  it('must be a name, and closed', () => {
    expect(failure(`server: { host: "\${A:-b}" }\n${BASE}`).lines[0]).toMatch(
      /server\.host: holds "\$\{A:-b\}"/,
    );
    expect(failure(`server: { host: "\${A" }\n${BASE}`).lines[0]).toMatch(/server\.host: holds/);
  });

  it.each([
    [undefined, 'not set'],
    ['', 'empty'],
  ])('is an error naming key and variable when it is %j', (value, state) => {
    expect(failure(`admin: { token: "\${TOKEN}", host: 0.0.0.0 }\n${BASE}`, { TOKEN: value })).toEqual({
      code: 'config_invalid',
      lines: [`c.yaml:1:17: admin.token: needs the environment variable TOKEN, which is ${state}`],
    });
  });

  it('is secret_missing when only signing secrets are affected', () => {
    expect(failure(SECRET + BASE)).toEqual({
      code: 'secret_missing',
      lines: [
        'c.yaml:1:22: signing.secrets[0]: needs the environment variable MILLRACE_SECRET, which is not set',
      ],
    });
  });
});

describe('${file:…}', () => {
  it('stands for the text of a file without its last line break', () => {
    const file = temporaryFile('secret', 'from a file\n');
    const signing = `signing: { scheme: hmac, secrets: ["a key of 24 bytes \${file:${file}}"] }`;
    expect(parse(`${signing}\n${BASE}`).config.signing.secrets).toEqual(['a key of 24 bytes from a file']);
  });

  it('holds several secrets during a rotation, as a variable can, except where a secret may have spaces', () => {
    const [fresh, old] = [24, 25].map((length) => `whsec_${Buffer.alloc(length, 7).toString('base64')}`);
    const file = temporaryFile('secret', `${fresh}\n${old}\n`);
    const secretsOf = (scheme: string): readonly string[] =>
      parse(`signing: { scheme: ${scheme}, secrets: ["\${file:${file}}", "\${OLD}"] }\n${BASE}`, {
        OLD: ` ${old}  ${fresh} `,
      }).config.signing.secrets;
    expect(secretsOf('standard-webhooks')).toEqual([fresh, old, old, fresh]);
    expect(secretsOf('hmac')).toEqual([`${fresh}\n${old}`, ` ${old}  ${fresh} `]);
  });

  it('with a secret that is too short is named, although it holds several', () => {
    const file = temporaryFile('secret', `whsec_${Buffer.alloc(24, 7).toString('base64')} c2hvcnQ=\n`);
    expect(failure(`signing: { secrets: ["\${file:${file}}"] }\n${BASE}`).lines[0]).toMatch(
      /signing\.secrets\[1\]: holds a key of 5 bytes/,
    );
  });

  it('names key and path when it cannot be read or is empty', () => {
    expect(failure(`admin: { token: "\${file:/no/such}" }\n${BASE}`).lines[0]).toMatch(
      /admin\.token: needs the file \/no\/such: /,
    );
    const empty = temporaryFile('secret', '\n');
    expect(failure(`admin: { token: "\${file:${empty}}" }\n${BASE}`).lines[0]).toContain('which is empty');
  });
});

describe('lenient', () => {
  it('turns what cannot be resolved into warnings: settings are left out, sinks keep the text', () => {
    const text = `${SECRET}server: { port: "\${PORT}" }\nadmin: { host: 0.0.0.0, token: "\${TOKEN}" }
sinks: { hubs: { type: event-hubs, connectionString: "\${HUBS}" } }
routes: [{ match: "*", to: "hubs:\${HUB}" }]`;
    const loaded = parse(text, {}, true);
    expect(loaded.config.signing.secrets).toEqual([]);
    expect(loaded.config.server.port).toBe(8080);
    expect(loaded.config.sinks['hubs']?.options).toEqual({ connectionString: '${HUBS}' });
    expect(loaded.warnings).toHaveLength(5);
    expect(loaded.unset).toContain('sinks.hubs.connectionString');
  });

  it('still refuses what is wrong', () => {
    expect(failure(`${SECRET}server: { prot: 1 }\n${BASE}`, {}, true).code).toBe('config_invalid');
  });
});

describe('printing', () => {
  const text = `
signing: { secrets: ["whsec_abcabcabcabcabcabcabcabcabcabcabc"] }
admin: { token: tok-of-sixteen-or-more }
journal: { path: "\${WHERE}/journal" }
sinks:
  hubs: { type: event-hubs, connectionString: cs, hub: events, nested: { clientSecret: deep, api_key: k, topic: t } }
  web: { type: ./web.js, url: "https://user:pw@host/", hook: "https://host/in?sig=s3cr#frag", plain: "https://host/in", header: { Authorization: abc } }
routes: [{ match: "*", to: ["hubs:\${HUB}", web] }]
`;

  it('binds each secret of a value to the teams beside it', () => {
    const secrets = `["\${FIRST}", { secret: "\${PAIR}", teams: [made-up-team] }]`;
    const keys = [1, 2, 3].map((n) => `whsec_${Buffer.alloc(24, n).toString('base64')}`);
    const env = { FIRST: keys[0]!, PAIR: keys.slice(1).join('\n') };
    const hidden = '[redacted]';
    const loaded = parse(`signing: { secrets: ${secrets} }\n${BASE}`, env);
    expect(loaded.config.signing).toMatchObject({
      secrets: keys,
      teams: [null, ['made-up-team'], ['made-up-team']],
    });
    expect(printable(loaded, 'text')).toMatchObject({
      signing: {
        secrets: [
          hidden,
          { secret: hidden, teams: ['made-up-team'] },
          { secret: hidden, teams: ['made-up-team'] },
        ],
      },
    });
    expect(printable(loaded, 'text')).not.toHaveProperty('signing.teams');
  });

  it('hides secrets, options named like one, and everything from ${…}, but not where routes lead', () => {
    const document = printable(parse(text, { WHERE: '/private', HUB: 'north' }), 'text');
    const output = JSON.stringify(document);
    expect(output).not.toMatch(/whsec_abc|tok-of|private|"cs"|deep|"k"|user:pw|"abc"|s3cr|frag/);
    expect(document).toMatchObject({
      signing: { secrets: ['[redacted]'], tolerance: '5m' },
      admin: { token: '[redacted]', host: '127.0.0.1' },
      journal: { path: '[redacted]', maxBytes: '10GiB' },
      sinks: { hubs: { hub: 'events', required: true, nested: { topic: 't' } } },
      routes: [{ match: ['*'], to: ['hubs:north', 'web'] }],
    });
    // Of a URL only what is asked for goes, whatever the option is called.
    expect(document).toMatchObject({
      sinks: { web: { hook: 'https://host/in?[redacted]', plain: 'https://host/in' } },
    });
  });

  it('writes units that can be read back', () => {
    const first = parse(`journal: { retention: 36h, maxBytes: 123456789 }\n${BASE}`);
    const again = parse(JSON.stringify(printable(first, 'text')));
    expect(again.config).toEqual(first.config);
    expect(parse(JSON.stringify(printable(first, 'numbers'))).config).toEqual(first.config);
  });
});
