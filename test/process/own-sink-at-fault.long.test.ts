import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MAIN } from '../support/millrace.ts';
import { Place } from '../support/place.ts';
import { expectConserved } from '../support/read-back.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const EVENTS = 20;

/** What a module does wrong, on its first calls; then it behaves. `took` notes what it has, `calls` counts its sends. */
interface Fault {
  readonly send?: string;
  readonly open?: string;
  readonly close?: string;
  /** In the log, beside the module's name, or in `status`. */
  readonly named: RegExp;
  /** Throws where nothing catches it: only a process of its own can say whose fault it is. */
  readonly isUncaught?: boolean;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'never answers a send': {
    send: 'if (calls <= 2) return new Promise(() => {});',
    named: /send has not answered within 4s/,
  },
  'answers a send after its time': {
    send: `if (calls <= 2) return new Promise((resolve) => setTimeout(() => resolve(batch.map(() => ({ status: 'refused', code: 'late', reason: 'late' }))), 10_000));`,
    named: /send has not answered within 4s/,
  },
  'never answers when it is opened': {
    open: 'if (opens === 1) await new Promise(() => {});',
    named: /open has not answered within/,
  },
  'throws late, outside of every call': {
    send: `if (calls === 1) setTimeout(() => { throw new Error('thrown late'); }, 1);`,
    named: /thrown late/,
    isUncaught: true,
  },
  'leaves a rejection that nothing handles': {
    send: `if (calls === 1) void Promise.reject(new Error('left alone'));`,
    named: /left alone/,
    isUncaught: true,
  },
  'rejects twice': {
    send: `if (calls === 1) { void (async () => { await 1; throw new Error('the second time'); })(); throw new Error('the first time'); }`,
    named: /the second time/,
    isUncaught: true,
  },
  'throws when its signal aborts': {
    send: `if (calls === 1) { signal.addEventListener('abort', () => { throw new Error('on abort'); }); return new Promise(() => {}); }`,
    named: /on abort/,
    isUncaught: true,
  },
  'writes into what it is given': {
    send: `for (const delivery of batch) {
      take([delivery]);
      delivery.event.body.fill(0x78);
      new Uint8Array(delivery.event.body.buffer).fill(0x78);
      for (const key of ['id', 'type', 'team', 'user', 'receivedAt']) delivery.event[key] = 'x';
      delivery.event.headers['webhook-id'] = 'x';
      delivery.event.handling.only = ['nowhere'];
      delivery.destination = 'x';
    }
    const results = batch.map(() => ({ status: 'delivered' }));
    batch.length = 0;
    return results;`,
    named: /changes the bodies it is given/,
  },
  'answers what is no answer': {
    send: `const answers = [undefined, 'yes', 7, [], batch.map(() => null), batch.map(() => ({})), batch.map(() => ({ status: 'lost' })),
      batch.map(() => ({ status: 'refused' })), [...batch, 1].map(() => ({ status: 'delivered' })), batch.map(() => ({ get status() { throw new Error('unreadable'); } }))];
    if (calls <= answers.length) return answers[calls - 1];`,
    named: /the sink answered/,
  },
  'asks for waits that are no times': {
    send: `const waits = [NaN, -1, -Infinity, 'soon', null];
    if (calls <= waits.length) return batch.map(() => ({ status: 'retry', reason: 'no such time', delayMs: waits[calls - 1], sink: true }));`,
    named: /no such time/,
  },
  'is not done closing when the receiver ends': { close: 'await new Promise(() => {});', named: /stopping/ },
  'throws when it is closed': { close: `throw new Error('will not close');`, named: /will not close/ },
};

function moduleWith({ send = '', open = '', close = '' }: Fault, folder: string): string {
  return `
import { appendFileSync } from 'node:fs';
let calls = 0;
let opens = 0;
const take = (batch) => appendFileSync(${JSON.stringify(join(folder, 'taken'))}, batch.map(({ event }) => event.id + ' ' + event.body.toString('base64') + '\\n').join(''));
export const parseOptions = () => ({});
export const createSink = () => ({
  limits: { batchCount: 50, batchBytes: 1e6, eventBytes: 1e6, inFlight: 1, order: 'user', batchBy: 'mixed' },
  open: async () => { opens += 1; ${open} },
  send: async (batch, signal) => {
    calls += 1;
    ${send}
    take(batch);
    return batch.map(() => ({ status: 'delivered' }));
  },
  close: async () => { ${close} },
});`;
}

function takenIn(folder: string): Map<string, string> {
  const file = join(folder, 'taken');
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return new Map(lines.map((line) => line.split(' ') as [string, string]));
}

/** Lines of the log that are no JSON: a stack trace of its own would be lost in a log. */
const notJson = ({ stderr }: Serving): string[] =>
  stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));

describe('a sink module harms its own sink only, and is named', () => {
  test.each(Object.entries(FAULTS))('one that %s', async (_what, fault) => {
    const place = await Place.make((folder) => ({
      // The module first: what it writes into would be seen by the archive.
      sinks: { faulty: { type: './faulty.mjs' }, archive: { type: 'files', path: join(folder, 'archive') } },
      delivery: { sendTimeout: '4s', retryInitial: '50ms', retryMax: '500ms' },
      shutdown: { deadline: '2s' },
    }));
    writeFileSync(place.at('faulty.mjs'), moduleWith(fault, place.folder));
    const receiver: Serving = await (fault.isUncaught ? place.startProcess() : place.start());
    const troubles = new Set<string>();
    const acknowledged = await receiver.send(EVENTS);
    const { sinks, journal } = await until('both sinks to be done', async () => {
      const status = await receiver.status();
      for (const { lastError, troubles: own } of status.sinks)
        for (const text of [lastError ?? '', ...own.map(({ detail }) => detail)]) troubles.add(text);
      return status.journal.cursors.every(({ backlog }) => backlog === 0) ? status : null;
    });
    expect(journal.deadLetters).toBe(0);
    const archive = { retried: 0, lastError: null, troubles: [] };
    expect(sinks.find(({ sink }) => sink === 'archive')).toMatchObject(archive);
    const taken = takenIn(place.folder);
    for (const [id, body] of acknowledged) expect(taken.get(id)).toBe(body.toString('base64'));
    await receiver.stop();
    expectConserved(await place.archived(), acknowledged);
    expect([...troubles, receiver.stderr].join('\n')).toMatch(fault.named);
    expect(notJson(receiver)).toEqual([]);
  });

  test.each([
    ['has limits that are none', 'inFlight: 1', 'inFlight: NaN', 'limits.inFlight must be a number'],
    ['has no send', 'send: async', 'sent: async', 'the sink has no function send'],
    [
      'throws as it is made',
      'createSink = () => ({',
      'createSink = () => ({ ...boom(),',
      'boom is not defined',
    ],
  ])('one that %s is refused at the start, by name', async (_what, from, to, message) => {
    const place = await Place.make({ sinks: { faulty: { type: './faulty.mjs' } } });
    writeFileSync(place.at('faulty.mjs'), moduleWith({ named: /./ }, place.folder).replace(from, to));
    const { code, stderr } = await place.run('serve');
    expect(code).toBe(2);
    for (const said of ['sinks.faulty', message]) expect(stderr).toContain(said);
  });
});

test('an error that was not caught, and of no sink: one line of JSON, an orderly end, exit 1, nothing lost', async () => {
  const place = await Place.make();
  const bomb = place.at('bomb.mjs');
  writeFileSync(
    bomb,
    `process.on('SIGUSR2', () => { void Promise.reject(new Error('made up, unexpected')); });`,
  );
  const receiver = await place.startProcess({ program: [process.execPath, '--import', bomb, MAIN] });
  const acknowledged = await receiver.send(EVENTS);
  expect(await receiver.kill('SIGUSR2')).toEqual({ code: 1, signal: null });
  expectConserved(await place.archived(), acknowledged);
  expect(notJson(receiver)).toEqual([]);
  const fatal = receiver.logLines().filter(({ level }) => level === 60);
  expect(fatal).toEqual([expect.objectContaining({ msg: 'uncaught error; stopping' })]);
  expect(JSON.stringify(fatal)).toContain('made up, unexpected');
});
