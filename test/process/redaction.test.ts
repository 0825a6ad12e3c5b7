import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { startEndpoint } from '../sinks/http-support.ts';
import { TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { expectConserved, readBack } from '../support/read-back.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { MadeUpData, readShapes } from '../warehouse/event-shapes.ts';

const DUMP = join(import.meta.dirname, 'dump-sink.ts');
const SECRET = `whsec_${Buffer.from('between us and targets').toString('base64')}`;

type Place = readonly string[];
/** Whether what stands there, or something it stands in, must not get to a sink. */
type IsSecret = (place: Place, sink: 'dump' | 'hooks' | 'lake') => boolean;

/** What the routes of the test say, in the words of a reader and not in paths. */
const secret: Readonly<Record<string, IsSecret>> = {
  labtest: ([root, first, second, ...rest], sink) => {
    if (root === 'client_user_id') return sink === 'dump';
    const isNamed = root === 'data' && [first, second, ...rest].includes('name');
    if (first === 'patient_details' || isNamed) return sink !== 'hooks';
    return sink === 'dump' && first === 'patient_address' && second !== undefined;
  },
  daily: ([root, ...rest]) =>
    root === 'data' && ['value', 'name', 'timestamp'].some((name) => rest.includes(name)),
  other: ([root, first, second]) => {
    if (root !== 'data') return root === 'note';
    return first !== 'id' && !(second === 'provider' && first !== undefined);
  },
};
const SINKS = ['dump', 'hooks', 'lake'] as const;

const kindOf = (type: string): string =>
  ['labtest', 'daily'].find((kind) => type.startsWith(`${kind}.`)) ?? 'other';

/** Texts and numbers are replaced by ones that say for which sinks they are secret: in the bits of the digit after the mark. */
function planted(value: unknown, place: Place, isSecret: IsSecret, tokens: Map<string, number>): unknown {
  if (Array.isArray(value))
    return value.map((item, n) => planted(item, [...place, String(n)], isSecret, tokens));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, planted(one, [...place, name], isSecret, tokens)]),
    );
  if (typeof value === 'boolean' || value === null) return value;
  const bits = SINKS.reduce((sum, sink, bit) => sum + (isSecret(place, sink) ? 2 ** bit : 0), 0);
  if (typeof value === 'number') return Number(`770077${bits}${tokens.size}`);
  const token = `Pläntéd${bits}/"${tokens.size};`;
  tokens.set(token, bits);
  return token;
}

/** All forms a text might take on its way: as it is, escaped, percent-encoded, hex, base64 wherever it begins. */
function formsOf(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  const escaped = Array.from(text, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const base64 = [0, 1, 2].map((shift) =>
    // Without what the neighbours have a part in.
    Buffer.concat([Buffer.alloc(shift), bytes, Buffer.from('/\\')])
      .toString('base64')
      .replaceAll('=', '')
      .slice(shift === 0 ? 0 : 4, -1),
  );
  const texts = [text, encodeURIComponent(text), escaped, bytes.toString('hex'), ...base64];
  return [
    ...texts,
    JSON.stringify(text).slice(1, -1),
    text.replaceAll(/[^ -~]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
  ].map((form) => Buffer.from(form));
}

/** Takes over the config as it is now. */
async function reload(receiver: Serving): Promise<void> {
  const count = (): number => receiver.logLines().filter(({ msg }) => msg === 'reloaded').length;
  const before = count();
  receiver.signal('SIGHUP');
  await until('reloaded', () => count() > before);
}

function bytesIn(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Buffer.concat(
    files.flatMap(({ parentPath, name }) => [Buffer.from(name), readFileSync(join(parentPath, name))]),
  );
}

test('no redacted value of any documented event is in any byte that a sink gets, and the archive has the original', async () => {
  const folder = await temporaryFolder();
  const endpoint = await startEndpoint();
  const config = writeConfig(folder, {
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      lake: { type: 'files', path: join(folder, 'lake'), compress: 'none' },
      keeper: { type: 'files', path: join(folder, 'keeper'), compress: 'none' },
      dump: { type: DUMP, folder },
      hooks: {
        type: 'http',
        url: endpoint.url('/all'),
        secrets: [SECRET],
        privateNetworks: ['127.0.0.1'],
        maxEventBytes: '4KiB',
        oversize: 'claim-check',
        claimCheck: 'keeper',
      },
    },
    routes: [
      {
        match: 'labtest.',
        to: [
          {
            target: 'dump',
            redact: ['/data/patient_details', '/data/patient_address/*', '/data/**/name', '/client_user_id'],
            mask: 'not for you',
          },
          'archive',
          { target: 'lake', remove: ['/data/**/name', '/data/patient_details'] },
        ],
      },
      {
        match: 'daily.',
        redact: ['/data/**/value', '/data/**/name', '/data/**/timestamp'],
        to: [
          'dump',
          'hooks',
          'archive',
          { target: 'lake', redact: ['/data/**/value', '/data/**/name', '/data/**/timestamp'] },
        ],
      },
      {
        match: '*',
        only: ['/data/id', '/data/*/provider'],
        to: ['archive', 'hooks', 'dump', { target: 'lake', only: ['/data/id', '/data/*/provider'] }],
      },
    ],
  });

  const tokens = new Map<string, number>();
  const sent = new Map<string, Buffer>();
  const routed = new Map(SINKS.map((sink) => [sink, new Set<string>()]));
  const { shapes } = readShapes();
  const types = shapes.flatMap((shape) => shape.types.map((type) => [type, shape] as const));
  expect(types.length).toBeGreaterThan(60);
  for (const [n, [prefix, shape]] of types.entries()) {
    const type = prefix.endsWith('.') ? `${prefix}created` : prefix;
    const event = {
      data: new MadeUpData('full', n + 1).of(shape),
      note: 'beside it',
      client_user_id: 'x',
    };
    const isSecret = secret[kindOf(type)]!;
    const before = tokens.size;
    const body = planted(event, [], isSecret, tokens) as Record<string, unknown>;
    const text = JSON.stringify({ ...body, event_type: type, team_id: TEAM, user_id: USER }, null, n % 3);
    // Too large for the HTTP sink: what it is pointed at is redacted, too.
    const padding = n % 10 === 0 ? ' '.repeat(5000) : '';
    sent.set(`event-${n}`, Buffer.from(`{${padding}${text.slice(1)}`));
    for (const token of [...tokens.keys()].slice(before))
      for (const sink of SINKS)
        if (sink !== 'hooks' || kindOf(type) !== 'labtest') routed.get(sink)!.add(token);
  }

  const receiver = await Receiver.start(config);
  for (const [id, body] of sent) expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  await receiver.drained();
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  const posted = Buffer.concat(
    endpoint.posts.flatMap(({ path, headers, body }) => [Buffer.from(path + JSON.stringify(headers)), body]),
  );
  const got = {
    dump: readFileSync(join(folder, 'dump')),
    hooks: Buffer.concat([posted, bytesIn(join(folder, 'keeper'))]),
    lake: bytesIn(join(folder, 'lake')),
  };
  expect(endpoint.posts.some(({ headers }) => headers['claim-check'] === 'true')).toBe(true);
  for (const [bit, sink] of SINKS.entries()) {
    const bytes = got[sink];
    for (const bits of [1, 2, 3, 4, 5, 6, 7].filter((each) => (each & (2 ** bit)) !== 0)) {
      for (const form of [...formsOf(`Pläntéd${bits}`), Buffer.from(`770077${bits}`)]) {
        const at = bytes.indexOf(form);
        const around =
          at < 0 ? '' : sink + form.toString() + bytes.toString('utf8', Math.max(0, at - 80), at + 80);
        expect({ sink, form: form.toString(), around }).toMatchObject({ around: '' });
      }
    }
    // And all that is no secret is there; of too many to search for each, a sample.
    const open = [...routed.get(sink)!].filter((token) => (tokens.get(token)! & (2 ** bit)) === 0);
    expect(open.length).toBeGreaterThan(50);
    for (const token of open.filter((_, n) => n % 7 === 0))
      expect({ token, there: bytes.includes(JSON.stringify(token).slice(1, -1)) }).toMatchObject({
        there: true,
      });
  }
  // Signed anew, over what was sent.
  for (const { headers, body } of endpoint.posts)
    new Webhook(SECRET).verify(body, headers as Record<string, string>);
  expectConserved(await readBack(join(folder, 'archive')), sent);
  for (const archive of ['archive', 'lake', 'keeper']) {
    const verified = await millrace([
      'archive',
      'verify',
      join(folder, archive),
      '--config',
      config,
      '--json',
    ]);
    expect({ archive, code: verified.code, out: verified.code === 0 ? '' : verified.stdout }).toEqual({
      archive,
      code: 0,
      out: '',
    });
  }
  expect((await millrace(['reconcile', '--config', config])).code).toBe(0);
});

const bodyOf = (n: number): Buffer =>
  Buffer.from(
    `{"event_type":"labtest.order.created","team_id":"${TEAM}","user_id":"${USER}","client_user_id":"c","data":{ "name" : "hidden-${n}", "code":"shown-${n}"}}`,
  );

test('what is loaded when a reload redacts is redacted, but for what is being sent', async () => {
  const folder = await temporaryFolder();
  const sinks = { dump: { type: DUMP, folder } };
  const routed = (route: object): string => writeConfig(folder, { sinks, routes: [route] });
  const config = routed({ match: '*', to: ['dump'] });
  const receiver = await Receiver.start(config);
  writeFileSync(join(folder, 'hold'), '');
  const post = async (n: number): Promise<void> => {
    expect((await postSigned(receiver.url, bodyOf(n), { id: `event-${n}` })).status).toBe(202);
  };
  await post(0);
  await until('a batch under way', () => existsSync(join(folder, 'begun')));
  for (let n = 1; n <= 30; n += 1) await post(n);
  routed({ match: '*', to: ['dump'], redact: '/data/name' });
  const reloaded = reload(receiver);
  await until('the end of the old feed', () =>
    receiver.logLines().some(({ msg }) => msg === 'sink draining'),
  );
  rmSync(join(folder, 'hold'));
  await reloaded;
  await receiver.drained();
  const text = readFileSync(join(folder, 'dump'), 'utf8');
  expect(text.match(/shown-\d+/g)).toHaveLength(31);
  expect(text.match(/hidden-\d+/g)).toEqual(['hidden-0']);
});

test('what waits, dies and is retried leaves by the redaction of today, or by that it had when no route says', async () => {
  const folder = await temporaryFolder();
  const sinks = { archive: { type: 'files', path: join(folder, 'archive') }, dump: { type: DUMP, folder } };
  const settings = { sinks, delivery: { retryInitial: '20ms', retryMax: '50ms' } };
  const routed = (...routes: object[]): object => ({ ...settings, routes });
  const dumped = (): string =>
    existsSync(join(folder, 'dump')) ? readFileSync(join(folder, 'dump'), 'utf8') : '';
  // Accepted while nothing was redacted, and waiting.
  writeFileSync(join(folder, 'closed'), '');
  const config = writeConfig(folder, routed({ match: '*', to: ['dump', 'archive'] }) as never);
  const receiver = await Receiver.start(config);
  const post = async (n: number): Promise<void> => {
    expect((await postSigned(receiver.url, bodyOf(n), { id: `event-${n}` })).status).toBe(202);
  };
  await post(1);
  writeConfig(folder, routed({ match: '*', to: ['dump', 'archive'], redact: '/data/name' }) as never);
  await reload(receiver);
  rmSync(join(folder, 'closed'));
  await until('the event that waited', () => dumped().includes('shown-1'));
  expect(dumped()).toContain('"data":{ "name" : null, "code":"shown-1"}}');

  // A dead letter is the event as it came; the route that redacts has gone when it is retried.
  writeFileSync(join(folder, 'refuse'), '');
  await post(2);
  const letters = async (): Promise<{ body_base64?: string }[]> => {
    const { stdout } = await millrace(['dead-letters', 'list', '--config', config, '--json']);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { body_base64?: string });
  };
  await until('a dead letter', async () => (await letters()).length === 1);
  const shown = await millrace(['dead-letters', 'show', '1', '--config', config, '--json']);
  expect(Buffer.from((JSON.parse(shown.stdout) as { body_base64: string }).body_base64, 'base64')).toEqual(
    bodyOf(2),
  );
  writeConfig(folder, routed({ match: 'daily.', to: ['dump'] }, { match: '*', to: ['archive'] }) as never);
  await reload(receiver);
  rmSync(join(folder, 'refuse'));
  const played = await millrace(['replay', 'dead-letters', '--to', 'dump', '--config', config]);
  expect(played.code, played.stderr).toBe(0);
  expect(dumped()).toContain('"data":{ "name" : null, "code":"shown-2"}}');
  expect((await millrace(['dead-letters', 'retry', '--all', '--config', config])).code).toBe(0);
  await until('the retried event', () => dumped().split('shown-2').length === 3);
  expect(dumped()).not.toContain('hidden');

  // Played to a sink that no route names for it: every redaction of the sink counts.
  writeConfig(
    folder,
    routed(
      { match: 'daily.', to: [{ target: 'dump', remove: '/data/name' }] },
      { match: '*', to: 'archive' },
    ) as never,
  );
  await reload(receiver);
  await receiver.drained();
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  rmSync(join(folder, 'dump'));
  const replayed = await millrace(['replay', join(folder, 'archive'), '--to', 'dump', '--config', config]);
  expect(replayed.code, replayed.stderr).toBe(0);
  expect(dumped()).toContain('"data":{ "code":"shown-1"}}');
  expect(dumped()).not.toContain('hidden');

  // And each archive record has what was signed.
  expectConserved(
    await readBack(join(folder, 'archive')),
    new Map([1, 2].map((n) => [`event-${n}`, bodyOf(n)])),
  );
});

test('a replay of an archive goes without what a route that is gone had redacted, with a receiver beside it and without', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const sinks = { archive: { type: 'files', path: archive }, dump: { type: DUMP, folder } };
  const routed = (...routes: object[]): string => writeConfig(folder, { sinks, routes });
  const config = routed({ match: '*', to: ['archive', { target: 'dump', redact: '/data/name' }] });
  const receiver = await Receiver.start(config);
  expect((await postSigned(receiver.url, bodyOf(1), { id: 'event-1' })).status).toBe(202);
  await receiver.drained();
  routed({ match: 'daily.', to: 'dump' }, { match: '*', to: 'archive' });
  await reload(receiver);
  expect((await millrace(['flush', '--config', config])).code).toBe(0);
  const replay = async (): Promise<string> => {
    rmSync(join(folder, 'dump'), { force: true });
    const { code, stderr } = await millrace(['replay', archive, '--to', 'dump', '--config', config]);
    expect(code, stderr).toBe(0);
    return readFileSync(join(folder, 'dump'), 'utf8');
  };
  const withoutName = expect.stringContaining('"data":{ "name" : null, "code":"shown-1"}}');
  expect(await replay()).toEqual(withoutName);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(await replay()).toEqual(withoutName);
});
