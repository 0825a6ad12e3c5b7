import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** A sink of a user's own that is down while its gate is shut, busy while it is held, and notes the ids it takes. */
const GATED = `
import { appendFileSync, existsSync } from 'node:fs';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const parseOptions = (options) => options;
export const createSink = ({ gate, hold, notes, slow, most = 1e6 }) => ({
  limits: { batchCount: 10, batchBytes: 1e6, eventBytes: most, inFlight: 1, order: 'user', batchBy: 'mixed' },
  open: async () => {},
  send: async (batch) => {
    if (!existsSync(gate)) return batch.map(() => ({ status: 'retry', reason: 'the gate is shut', sink: true, delayMs: 20 }));
    while (existsSync(hold)) await pause(10);
    if (slow) await pause(slow);
    appendFileSync(notes, batch.map(({ event }) => event.id + '\\n').join(''));
    return batch.map(() => ({ status: 'delivered' }));
  },
  close: async () => {},
});`;

/** A receiver's config that the test changes step by step, and sinks whose gates it opens. */
class Bench {
  readonly folder: string;
  readonly #options: Record<string, object>;

  constructor(folder: string, options: Record<string, object> = {}) {
    this.folder = folder;
    this.#options = options;
    writeFileSync(join(folder, 'gated.mjs'), GATED);
  }

  sink(name: string, more: object = {}): object {
    const at = (what: string): string => join(this.folder, `${name}.${what}`);
    return { type: './gated.mjs', gate: at('gate'), hold: at('hold'), notes: at('notes'), ...more };
  }

  config(sinks: Record<string, object>, routes: object[]): string {
    return writeConfig(this.folder, { ...this.#options, sinks, routes, shutdown: { deadline: '1s' } });
  }

  /** A sink that cannot be opened, and never will be. */
  wrong(): object {
    return { type: 'files', path: join(this.folder, 'gated.mjs', 'below-a-file') };
  }

  open(name: string): void {
    writeFileSync(join(this.folder, `${name}.gate`), '');
  }

  /** Lets a batch in flight at the sink wait until it is released. */
  hold(name: string): void {
    writeFileSync(join(this.folder, `${name}.hold`), '');
  }

  release(name: string): void {
    rmSync(join(this.folder, `${name}.hold`));
  }

  taken(name: string): string[] {
    const notes = join(this.folder, `${name}.notes`);
    return existsSync(notes) ? readFileSync(notes, 'utf8').trim().split('\n').filter(Boolean) : [];
  }

  /** Resolves with the log's line that says what came of it. */
  async reload(receiver: Serving): Promise<Record<string, unknown>> {
    const answers = (): Record<string, unknown>[] =>
      receiver.logLines().filter(({ msg }) => /^reload(ed| failed)/.test(String(msg)));
    const before = answers().length;
    receiver.signal('SIGHUP');
    await until('an answer to SIGHUP', () => answers().length > before);
    return answers().at(-1) ?? {};
  }
}

async function send(receiver: Serving, count: number, from = 0): Promise<string[]> {
  const ids: string[] = [];
  for (let n = from; n < from + count; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    ids.push(id);
  }
  return ids;
}

const sorted = (ids: Iterable<string>): string[] => [...new Set(ids)].toSorted();
const everythingTo = (...to: string[]): object => ({ match: '*', to });

test.each(['with a restart', 'without a restart'])(
  'a sink is down with a backlog while two reloads change the routes, %s: every event has its place',
  async (how) => {
    const bench = new Bench(await temporaryFolder(), { delivery: { maxPending: 10 } });
    const sinks = { a: bench.sink('a'), b: bench.sink('b') };
    bench.open('a');
    const config = bench.config(sinks, [everythingTo('b')]);
    const Kind = how === 'with a restart' ? ReceiverProcess : Receiver;
    const receiver: Serving = await Kind.start(config);
    const ids = await send(receiver, 50);
    bench.config(sinks, [everythingTo('a')]);
    expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
    bench.config(sinks, [{ match: 'labtest.', to: ['a'] }, everythingTo('a')]);
    expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
    const later = await send(receiver, 5, 50);
    const reconciled = await millrace(['reconcile', '--config', config, '--json']);
    expect(reconciled.code, reconciled.stdout).toBe(0);
    expect(JSON.parse(reconciled.stdout).sinks).toMatchObject([
      { sink: 'a', delivered: 5, elsewhere: 50 },
      { sink: 'b', waiting: 50, elsewhere: 5 },
    ]);
    let running: Serving = receiver;
    if (how === 'with a restart') {
      await receiver.kill('SIGKILL');
      running = await Receiver.start(config);
    }
    bench.open('b');
    await running.drained();
    expect(sorted(bench.taken('b'))).toEqual(sorted(ids));
    expect(sorted(bench.taken('a'))).toEqual(sorted(later));
  },
);

test.each(['by a reload', 'between two starts', 'after kill -9'])(
  'a sink that is down with a backlog is taken out %s: refused with the count and the choices, then continued by another',
  async (how) => {
    const bench = new Bench(await temporaryFolder());
    const a = bench.sink('a');
    bench.open('a');
    const config = bench.config({ a, b: bench.sink('b') }, [everythingTo('a', 'b')]);
    const Kind = how === 'after kill -9' ? ReceiverProcess : Receiver;
    const receiver: Serving = await Kind.start(config);
    const ids = await send(receiver, 50);
    const changeTo = async (sinks: Record<string, object>, routes: object[]): Promise<string> => {
      bench.config(sinks, routes);
      if (how === 'by a reload') {
        const { msg, error } = await bench.reload(receiver);
        return `${String(msg)} ${String(error)} ${receiver.stderr.split('\n').slice(-6).join('\n')}`;
      }
      const started = new ReceiverProcess(config);
      const ended = started.exited.then(({ code }) => code);
      const up = started.listening().then(
        () => 'up' as const,
        () => 'ended' as const,
      );
      if ((await Promise.race([ended, up])) === 'up') {
        await started.kill('SIGKILL');
        return 'reloaded';
      }
      expect(await ended).toBe(2);
      return started.stderr;
    };
    if (how === 'between two starts') await receiver.kill('SIGTERM');
    if (how === 'after kill -9') await receiver.kill('SIGKILL');
    const refused = await changeTo({ a }, [everythingTo('a')]);
    expect(refused).toContain('sinks.b: 50 events wait for it');
    expect(refused).toContain('continues: b');
    expect(refused).toContain('millrace sink drop b');
    // The config as it lies there names no b: what waits for it is named, and is a difference.
    const reconciled = await millrace(['reconcile', '--config', config, '--json']);
    expect(reconciled.code).toBe(4);
    expect(JSON.parse(reconciled.stdout).differences).toMatchObject([
      { code: 'abandoned', sink: 'b', count: 50 },
    ]);
    const renamed = { a, c: bench.sink('c', { continues: 'b' }) };
    expect(await changeTo(renamed, [everythingTo('a', 'c')])).toContain('reloaded');
    bench.open('c');
    if (how !== 'by a reload') {
      const again = await Receiver.start(config);
      await again.drained();
    } else await receiver.drained();
    expect(sorted(bench.taken('c'))).toEqual(sorted(ids));
    const after = await millrace(['reconcile', '--config', config]);
    expect(after.code, after.stdout).toBe(0);
  },
);

test.each(['while it runs', 'while it is down'])(
  'what waits for a sink that is gone becomes dead letters when a person drops it, %s',
  async (how) => {
    const bench = new Bench(await temporaryFolder());
    const a = bench.sink('a');
    bench.open('a');
    const config = bench.config({ a, b: bench.sink('b') }, [everythingTo('a', 'b')]);
    const Kind = how === 'while it runs' ? Receiver : ReceiverProcess;
    const receiver: Serving = await Kind.start(config);
    const ids = await send(receiver, 20);
    bench.config({ a }, [everythingTo('a')]);
    if (how === 'while it runs') {
      expect(await bench.reload(receiver)).toMatchObject({ msg: expect.stringContaining('reload failed') });
      expect((await millrace(['sink', 'drop', 'b', '--config', config])).stdout).toContain('still open: 20');
      ids.push(...(await send(receiver, 5, 20)));
      expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
    } else {
      await receiver.kill('SIGKILL');
      expect((await millrace(['sink', 'drop', 'b', '--config', config])).stdout).toContain(
        'b: 20 dead letters',
      );
      await Receiver.start(config);
    }
    const listed = await millrace([
      'dead-letters',
      'list',
      '--sink',
      'b',
      '--limit',
      '100',
      '--json',
      '--config',
      config,
    ]);
    const letters = listed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; code: string });
    expect(sorted(letters.map(({ id }) => id))).toEqual(sorted(ids));
    expect(new Set(letters.map(({ code }) => code))).toEqual(new Set(['sink_dropped']));
    expect((await millrace(['sink', 'drop', 'nobody', '--config', config])).code).not.toBe(0);
    const { code, stdout } = await millrace(['reconcile', '--config', config]);
    expect(code, stdout).toBe(0);
  },
);

test('a healthy sink that is busy is taken out by a reload, and the process killed: nothing is abandoned', async () => {
  const bench = new Bench(await temporaryFolder(), { delivery: { maxPending: 20 } });
  const a = bench.sink('a');
  bench.open('a');
  bench.open('b');
  const b = bench.sink('b', { slow: 120 });
  const config = bench.config({ a, b }, [everythingTo('a', 'b')]);
  const receiver = await ReceiverProcess.start(config);
  const ids = await send(receiver, 300);
  bench.config({ a }, [everythingTo('a')]);
  receiver.signal('SIGHUP');
  await until(
    'the reload to have begun',
    () => receiver.stderr.includes('SIGHUP') || bench.taken('b').length > 20,
  );
  await receiver.kill('SIGKILL');
  const restarted = new ReceiverProcess(config);
  const up = await Promise.race([
    restarted.exited.then(() => false),
    restarted.listening().then(
      () => true,
      () => false,
    ),
  ]);
  if (!up) expect(restarted.stderr).toMatch(/sinks\.b: \d+ events wait for it/);
  await restarted.kill('SIGKILL');
  bench.config({ a, b }, [everythingTo('a')]);
  await (await Receiver.start(config)).drained();
  expect(sorted(bench.taken('b'))).toEqual(sorted(ids));
  expect(sorted(bench.taken('a'))).toEqual(sorted(ids));
});

test('a healthy sink that is taken out has all that was for it, and leaves', async () => {
  const bench = new Bench(await temporaryFolder());
  const a = bench.sink('a');
  bench.open('a');
  bench.open('b');
  const config = bench.config({ a, b: bench.sink('b', { slow: 20 }) }, [everythingTo('a', 'b')]);
  const receiver = await Receiver.start(config);
  const ids = await send(receiver, 60);
  bench.config({ a }, [everythingTo('a')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
  await until('b to have left', () =>
    receiver.logLines().some(({ msg, sink }) => msg === 'removed sink is done' && sink === 'b'),
  );
  expect(sorted(bench.taken('b'))).toEqual(sorted(ids));
  await send(receiver, 5, 60);
  expect((await receiver.status()).journal.cursors.map(({ sink }) => sink)).toEqual(['a']);
  await receiver.drained();
  const { code, stdout } = await millrace(['reconcile', '--config', config]);
  expect(code, stdout).toBe(0);
  expect(bench.taken('b')).toHaveLength(60);
});

test.each(['before', 'after'])(
  'dead letters of a dropped sink, retried %s the start that brings it back: it has them all',
  async (when) => {
    const bench = new Bench(await temporaryFolder());
    const [a, b] = [bench.sink('a'), bench.sink('b')];
    bench.open('a');
    const config = bench.config({ a, b }, [everythingTo('a', 'b')]);
    const receiver = await ReceiverProcess.start(config);
    const ids = await send(receiver, 20);
    await receiver.kill('SIGKILL');
    bench.config({ a }, [everythingTo('a')]);
    await millrace(['sink', 'drop', 'b', '--config', config]);
    bench.config({ a, b }, [everythingTo('a', 'b')]);
    bench.open('b');
    const retryLetters = async (): Promise<void> => {
      const { stdout } = await millrace(['dead-letters', 'retry', '--all', '--config', config]);
      expect(stdout).toContain('retried 20');
    };
    if (when === 'before') await retryLetters();
    const again = await Receiver.start(config);
    if (when === 'after') await retryLetters();
    await again.drained();
    expect(sorted(bench.taken('b'))).toEqual(sorted(ids));
  },
);

test('events that are let out of quarantine after a sink was dropped are not counted as delivered to it', async () => {
  const folder = await temporaryFolder();
  const bench = new Bench(folder);
  const strict = new Bench(folder, { envelope: { teams: ['00000000-0000-4000-8000-000000000000'] } });
  const [a, b] = [bench.sink('a'), bench.sink('b')];
  bench.open('a');
  bench.open('b');
  const config = strict.config({ a, b }, [everythingTo('a', 'b')]);
  const receiver = await Receiver.start(config);
  const [id] = await send(receiver, 1);
  await receiver.kill('SIGTERM');
  bench.config({ a }, [everythingTo('a')]);
  await millrace(['sink', 'drop', 'b', '--config', config]);
  const { stdout } = await millrace(['quarantine', 'retry', '--all', '--config', config]);
  expect(stdout).toContain('retried 1');
  bench.config({ a, b }, [everythingTo('a', 'b')]);
  await (await Receiver.start(config)).drained();
  expect(bench.taken('a')).toEqual([id]);
  const reconciled = JSON.parse((await millrace(['reconcile', '--config', config, '--json'])).stdout);
  expect([bench.taken('b'), reconciled.sinks]).toMatchObject([
    [],
    [
      { sink: 'a', delivered: 1 },
      { sink: 'b', delivered: 0, elsewhere: 1 },
    ],
  ]);
});

test('a reload that fails leaves no place in the journal for the sinks it had opened, new or back again', async () => {
  const bench = new Bench(await temporaryFolder());
  const [a, b, c] = [bench.sink('a'), bench.sink('b'), bench.sink('c')];
  bench.open('a');
  bench.open('b');
  const config = bench.config({ a, b }, [everythingTo('a')]);
  const receiver = await Receiver.start(config);
  bench.config({ a }, [everythingTo('a')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
  bench.config({ a, b, c, wrong: bench.wrong() }, [everythingTo('a', 'b', 'c')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: expect.stringContaining('reload failed') });
  await send(receiver, 5);
  await receiver.drained();
  const { cursors } = (await receiver.status()).journal;
  expect(cursors).toMatchObject([{ sink: 'a', backlog: 0 }]);
});

test('a sink that is leaving continues when a reload that takes it back fails', async () => {
  const bench = new Bench(await temporaryFolder(), { delivery: { maxPending: 5 } });
  const a = bench.sink('a');
  const b = bench.sink('b');
  bench.open('a');
  bench.open('b');
  bench.hold('b');
  const config = bench.config({ a, b }, [everythingTo('a', 'b')]);
  const receiver = await Receiver.start(config);
  const ids = await send(receiver, 50);
  bench.config({ a }, [everythingTo('a')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
  expect(bench.taken('b')).toEqual([]);
  bench.config({ a, b, wrong: bench.wrong() }, [everythingTo('a', 'b')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: expect.stringContaining('reload failed') });
  bench.release('b');
  await until('b to have left', () =>
    receiver.logLines().some(({ msg, sink }) => msg === 'removed sink is done' && sink === 'b'),
  );
  expect(sorted(bench.taken('b'))).toEqual(sorted(ids));
});

test('a sink continues for one that is leaving already', async () => {
  const bench = new Bench(await temporaryFolder(), { delivery: { maxPending: 5 } });
  const [a, c] = [bench.sink('a'), bench.sink('c')];
  for (const name of ['a', 'b', 'c']) bench.open(name);
  const config = bench.config({ a, b: bench.sink('b', { slow: 120 }) }, [everythingTo('a', 'b')]);
  // Busy with its first batch until it leaves, however long the sending takes.
  bench.hold('b');
  const receiver = await Receiver.start(config);
  const ids = await send(receiver, 300);
  bench.config({ a }, [everythingTo('a')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
  bench.release('b');
  bench.config({ a, c: { ...c, continues: 'b' } }, [everythingTo('a', 'c')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
  await receiver.drained();
  expect(bench.taken('b').length).toBeLessThan(300);
  expect(sorted([...bench.taken('b'), ...bench.taken('c')])).toEqual(sorted(ids));
  expect((await receiver.status()).journal.cursors.map(({ sink }) => sink)).toEqual(['a', 'c']);
});

test('a files sink that is taken out together with one whose large events it keeps stays for as long as that', async () => {
  const bench = new Bench(await temporaryFolder());
  const a = bench.sink('a');
  const kept = { type: 'files', path: join(bench.folder, 'kept') };
  bench.open('a');
  bench.open('b');
  const b = bench.sink('b', { slow: 20, most: 700, oversize: 'claim-check', claimCheck: 'kept' });
  const config = bench.config({ a, b, kept }, [everythingTo('a', 'b')]);
  const receiver = await Receiver.start(config);
  const ids = await send(receiver, 60);
  bench.config({ a }, [everythingTo('a')]);
  expect(await bench.reload(receiver)).toMatchObject({ msg: 'reloaded' });
  await until('both to have left', () =>
    ['b', 'kept'].every((name) =>
      receiver.logLines().some(({ msg, sink }) => msg === 'removed sink is done' && sink === name),
    ),
  );
  expect(sorted(bench.taken('b'))).toEqual(sorted(ids));
});
