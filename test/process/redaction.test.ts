import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { startEndpoint } from '../sinks/http-support.ts';
import { TEAM, USER } from '../support/events.ts';
import { Place } from '../support/place.ts';
import { expectConserved } from '../support/read-back.ts';
import { until } from '../support/until.ts';
import { MadeUpData, readShapes } from '../tables/event-shapes.ts';

const DUMP = join(import.meta.dirname, 'dump-sink.ts');
const SECRET = `whsec_${Buffer.from('between us and targets').toString('base64')}`;

type Path = readonly string[];
/** Whether what stands there, or something it stands in, must not get to a sink. */
type IsSecret = (path: Path, sink: 'dump' | 'hooks' | 'lake') => boolean;

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
const MEASURED = ['/data/**/value', '/data/**/name', '/data/**/timestamp'];

const kindOf = (type: string): string =>
  ['labtest', 'daily'].find((kind) => type.startsWith(`${kind}.`)) ?? 'other';

/** Texts and numbers are replaced by ones that say for which sinks they are secret: in the bits of the digit after the mark. */
function planted(value: unknown, place: Path, isSecret: IsSecret, tokens: Map<string, number>): unknown {
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

function bytesIn(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Buffer.concat(
    files.flatMap(({ parentPath, name }) => [Buffer.from(name), readFileSync(join(parentPath, name))]),
  );
}

test('no redacted value of any documented event is in any byte that a sink gets, and the archive has the original', async () => {
  const endpoint = await startEndpoint();
  const place = await Place.make((folder) => ({
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
        redact: MEASURED,
        to: ['dump', 'hooks', 'archive', { target: 'lake', redact: MEASURED }],
      },
      {
        match: '*',
        only: ['/data/id', '/data/*/provider'],
        to: ['archive', 'hooks', 'dump', { target: 'lake', only: ['/data/id', '/data/*/provider'] }],
      },
    ],
  }));
  const { folder } = place;

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

  const receiver = await place.start();
  await receiver.send(Array.from(sent, ([id, body]) => ({ id, body })));
  await receiver.drained();
  await receiver.stop();

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
  // Signed again, over what was sent.
  for (const { headers, body } of endpoint.posts)
    new Webhook(SECRET).verify(body, headers as Record<string, string>);
  expectConserved(await place.archived(), sent);
  for (const archive of ['archive', 'lake', 'keeper']) await place.ok('archive', 'verify', place.at(archive));
  await place.ok('reconcile');
});

const bodyOf = (n: number): Buffer =>
  Buffer.from(
    `{"event_type":"labtest.order.created","team_id":"${TEAM}","user_id":"${USER}","client_user_id":"c","data":{ "name" : "hidden-${n}", "code":"shown-${n}"}}`,
  );

test('a dead letter, a retry and a replay leave without what a route that is gone had redacted, beside a receiver and without one', async () => {
  const place = await Place.make();
  const { folder } = place;
  const archive = { type: 'files', path: place.at('archive') };
  const sinks = { archive, dump: { type: DUMP, folder } };
  const route = (...routes: object[]): void =>
    place.write({ sinks, routes, delivery: { retryInitial: '20ms', retryMax: '50ms' } });
  const dumped = (): string => (existsSync(place.at('dump')) ? readFileSync(place.at('dump'), 'utf8') : '');
  const played = async (from: string): Promise<string> => {
    rmSync(place.at('dump'), { force: true });
    await place.ok('replay', from, '--to', 'dump');
    return dumped();
  };
  const withoutName = '"data":{ "name" : null, "code":"shown-1"}}';

  // A dead letter is the event as it came; the route that redacts has gone when it is retried.
  writeFileSync(place.at('refuse'), '');
  route({ match: '*', to: ['archive', { target: 'dump', redact: '/data/name' }] });
  const receiver = await place.start();
  const sent = await receiver.send([{ id: 'event-1', body: bodyOf(1) }]);
  await receiver.drained();
  await place.ok('flush');
  const { body_base64: kept } = await place.json('dead-letters', 'show', '1');
  expect(Buffer.from(kept as string, 'base64')).toEqual(bodyOf(1));
  route({ match: 'daily.', to: ['dump'] }, { match: '*', to: ['archive'] });
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  rmSync(place.at('refuse'));
  expect(await played('dead-letters')).toContain(withoutName);
  expect(await played(archive.path)).toContain(withoutName);
  rmSync(place.at('dump'));
  await place.ok('dead-letters', 'retry', '--all');
  await until('the retried event', () => dumped().includes(withoutName));
  expect(dumped()).not.toContain('hidden');

  // Played to a sink that no route names for it: every redaction of the sink counts.
  route({ match: 'daily.', to: [{ target: 'dump', remove: '/data/name' }] }, { match: '*', to: 'archive' });
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  await receiver.stop();
  expect(await played(archive.path)).toContain('"data":{ "code":"shown-1"}}');
  // And each archive record has what was signed.
  expectConserved(await place.archived(), sent);
});
