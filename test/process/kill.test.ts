import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Pool } from 'undici';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { seededRandom } from '../support/random.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

// MILLRACE_KILL_CYCLES=200 for the long run; MILLRACE_KILL_SEED=<seed> to have a run's random numbers again.
const CYCLES = Number(process.env['MILLRACE_KILL_CYCLES'] ?? 20);
const SEED = Number(process.env['MILLRACE_KILL_SEED'] ?? Date.now() % 2 ** 31);
const CONNECTIONS = 8;
const TIMEOUT = 60_000 + CYCLES * 30_000;
/** Answers after which a cycle is killed, at the most. */
const ANSWERS = 300;
/** One cycle in this many is killed while it starts, amid its recovery. */
const AMID_START = 5;

/** What a sender knows: what was acknowledged, and what it has to send again because no answer came. */
class Sender {
  readonly sent = new Map<string, Buffer>();
  readonly acknowledged = new Map<string, Buffer>();
  readonly #again: string[] = [];
  answers = 0;

  /** Keeps the load up until so many more have been answered and `then` is over. */
  async during(url: string, answers: number, then: () => Promise<void>): Promise<void> {
    const stop = new AbortController();
    const load = this.#load(url, stop.signal);
    const goal = this.answers + answers;
    try {
      const missing = `${answers} answers before the receiver was gone`;
      await Promise.race([
        until(missing, () => this.answers >= goal),
        load.then(() => expect.fail(`waited in vain for: ${missing}`)),
      ]);
      await then();
    } finally {
      stop.abort();
      await load;
    }
  }

  /** Posts over several connections, each event after the answer to the one before, until `signal` aborts. */
  async #load(url: string, signal: AbortSignal): Promise<void> {
    const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS });
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        while (!signal.aborted) if (!(await this.#one(url, pool))) break;
      }),
    );
    await pool.destroy();
  }

  /** False when no answer came. */
  async #one(url: string, dispatcher: Pool): Promise<boolean> {
    const id = this.#again.pop() ?? this.#next();
    const body = this.sent.get(id) ?? Buffer.alloc(0);
    try {
      const { status } = await postSigned(url, body, { id, dispatcher });
      expect([200, 202]).toContain(status);
      this.acknowledged.set(id, body);
      this.answers += 1;
      return true;
    } catch (error) {
      if (error instanceof Error && error.name === 'AssertionError') throw error;
      this.#again.push(id);
      return false;
    }
  }

  #next(): string {
    const { id, body } = madeUpEvent(this.sent.size);
    this.sent.set(id, body);
    return id;
  }
}

/** Kills a receiver in the midst of load, again and again; then lets one live, drain and stop. */
async function killAgainAndAgain(config: string, seed: number): Promise<Sender> {
  console.log(`kill -9: ${CYCLES} cycles, MILLRACE_KILL_SEED=${seed}`);
  const random = seededRandom(seed);
  const sender = new Sender();

  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    const receiver = new ReceiverProcess(config);
    if (cycle % AMID_START === 0) {
      // The moment is the fault; nothing waits for it to be over.
      await wait(random() * 1000);
      await receiver.kill('SIGKILL');
      continue;
    }
    await receiver.listening();
    await sender.during(receiver.url, Math.ceil(random() * ANSWERS), async () => {
      await wait(random() * 20);
      await receiver.kill('SIGKILL');
    });
  }

  const receiver = await ReceiverProcess.start(config);
  await sender.during(receiver.url, 100, () => Promise.resolve());
  expect((await receiver.drained()).journal).toMatchObject({ quarantined: 0, deadLetters: 0 });
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  return sender;
}

test(`fault 01: kill -9 under load, ${CYCLES} cycles`, { timeout: TIMEOUT }, async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const sender = await killAgainAndAgain(writeConfig(folder), SEED);
  const found = await readBack(archive);
  expectConserved(found, sender.acknowledged, sender.sent);
  // The file that was open tells the next start what it holds, so not even the unsettled events come twice.
  expectOnce(found);
  await expectWhole(archive);
});

test(
  `fault 05: kill -9 while files are finished all the time, ${CYCLES} cycles`,
  { timeout: TIMEOUT },
  async () => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    // So small that a file is finished, and its line added to the manifest, with almost every batch.
    const rotate = { bytes: '4KiB' };
    const config = writeConfig(folder, { sinks: { archive: { type: 'files', path: archive, rotate } } });
    const sender = await killAgainAndAgain(config, SEED + 1);
    const found = await readBack(archive);
    expectConserved(found, sender.acknowledged, sender.sent);
    for (const copies of found.values()) {
      // At least once: a cursor may be behind by a file or two. In one file an event never stands twice.
      expect(new Set(copies.map(({ file }) => file)).size).toBe(copies.length);
    }
    await expectWhole(archive);
  },
);
