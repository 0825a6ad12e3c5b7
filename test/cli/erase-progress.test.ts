import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/folders.ts';
import { serve } from '../support/listen.ts';
import { writeConfig } from '../support/millrace.ts';
import { until } from '../support/until.ts';
import { ioOf } from './run.ts';

const RESULT = { receipts: [], left: [], files_searched: 40, bytes_searched: 4000 };

/**
 * A receiver's admin API, whose erasure has searched ten files more each time that it is asked.
 * @param tells whether it knows of that; `not at all` hangs up at once, as to all that is asked from then on but the run, which may come a moment later
 */
async function startErasing(
  tells: 'how far' | 'done' | 'no end' | 'not at all',
): Promise<{ port: number; asked: () => number }> {
  let asked = 0;
  let finish: (() => void) | null = null;
  const server = await serve((request, response) => {
    if (tells === 'not at all' && asked > 0 && request.url !== '/api/erasures/run')
      return void request.socket.destroy();
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const { url } = request;
    if (url === '/livez') return answer(200, {});
    if (url === '/api/erasures') return answer(200, { request: 'made-up', due_at: '2026-11-23T00:00:00Z' });
    if (url === '/api/erasures/run') finish = () => answer(200, RESULT);
    if (url !== '/api/erasures/progress') return;
    asked += 1;
    if (tells === 'not at all') return void request.socket.destroy();
    if ((asked === 3 && tells === 'how far') || tells === 'done') setImmediate(() => finish?.());
    if (tells === 'done') return answer(404, { code: 'not_found', detail: 'made up' });
    answer(200, asked === 1 ? null : { store: 1, stores: 2, files: asked * 10, total: 40, bytes: 4096 });
  });
  return { port: Number(new URL(server).port), asked: () => asked };
}

async function erase(port: number, signal?: AbortSignal): Promise<{ said: string; exit: number }> {
  const config = writeConfig(await temporaryFolder(), {
    acknowledge: 'delivered',
    admin: { port, token: 'made-up-token-for-this-test' },
    sinks: { out: { type: 'stdout' } },
  });
  let exit = 0;
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  const io = ioOf({
    stderr,
    env: { NO_COLOR: '1' },
    setExit: (code) => (exit = code),
    ...(signal === undefined ? {} : { signal }),
  });
  await runProgram(io, ['erase', 'made-up-user', '--now', '--config', config]);
  return { said: String(stderr.read() ?? ''), exit };
}

test('an erasure that a running receiver performs is shown with its rate and the time left', async () => {
  const { port, asked } = await startErasing('how far');
  const { said, exit } = await erase(port);
  expect(exit).toBe(0);
  expect(asked()).toBeGreaterThanOrEqual(3);
  expect(said).toMatch(/store 1 of 2: searched 20\/40 files, 4 KiB/);
  expect(said).toMatch(/searched 30\/40 files, 4 KiB, [\d.]+\/s, .*left/);
  // What follows begins on a line of its own.
  expect(said.endsWith('left\r\u001b[Knothing is due\n')).toBe(true);
});

test('a receiver that does not tell how far it is erases all the same', async () => {
  const { port } = await startErasing('done');
  expect(await erase(port)).toEqual({ said: 'nothing is due\n', exit: 0 });
});

test('one that hangs in an erasure is not waited for, and what became of it is not made up', async () => {
  const { port } = await startErasing('not at all');
  const { said, exit } = await erase(port);
  expect(said).toMatch(/^millrace: Receiver cannot be reached: http:\S+\/api\/erasures\/progress: /);
  expect(exit).toBe(1);
});

test('who asked for it may go before it is done', async () => {
  const { port, asked } = await startErasing('no end');
  const stop = new AbortController();
  const erased = erase(port, stop.signal);
  await until('the run to be watched', () => asked() > 0);
  stop.abort();
  expect(await erased).toEqual({
    said: expect.stringMatching(/millrace: Interrupted: the receiver continues the run; .*--list/),
    exit: 1,
  });
});
