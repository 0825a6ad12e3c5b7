import { describe, expect, test } from 'vitest';
import { speedClock } from '../../src/sandbox/options.ts';
import { startSandbox } from '../../src/sandbox/start.ts';
import { sandboxCommand } from '../../src/cli/sandbox/command.ts';
import { run } from '../cli/run.ts';
import { DAY, HOUR, ManualClock } from './manual-clock.ts';
import { Bench } from './support.ts';

describe('seed', () => {
  test('the same seed gives the same users, meals and keys; another gives others', async () => {
    expect(await look('one')).toEqual(await look('one'));
    expect(await look('one')).not.toEqual(await look('two'));
  });
});

describe('speed', () => {
  test('a fast clock calls back early and counts time by its factor', () => {
    const base = new ManualClock();
    const fast = speedClock(1000, base);
    let called = false;
    fast.after(HOUR, () => (called = true));
    base.advance(3_599);
    expect(called).toBe(false);
    base.advance(1);
    expect(called).toBe(true);
    expect(fast.monotonic() - base.now() + 3_600).toBe(HOUR);
  });

  test('waits beyond the reach of a timer work', () => {
    const base = new ManualClock();
    let called = false;
    speedClock(1, base).after(60 * DAY, () => (called = true));
    base.advance(60 * DAY - 1);
    expect(called).toBe(false);
    base.advance(1);
    expect(called).toBe(true);
  });
});

describe('faults', () => {
  test('come as often as asked for, and in the same places again', async () => {
    const first = await statuses();
    expect(new Set(first)).toEqual(new Set([200, 429, 503]));
    expect(await statuses()).toEqual(first);
  });

  test('a dropped connection can lose the answer to work that was done', async () => {
    const bench = await Bench.start();
    bench.sandbox.state.faults.next({ kind: 'drop-after' });
    await expect(bench.post('/v2/user', { client_user_id: 'lost' })).rejects.toThrow('fetch failed');
    expect((await bench.post('/v2/user', { client_user_id: 'lost' })).status).toBe(400);
    bench.sandbox.state.faults.next({ kind: 'drop-before' });
    await expect(bench.post('/v2/user', { client_user_id: 'never' })).rejects.toThrow('fetch failed');
    expect((await bench.post('/v2/user', { client_user_id: 'never' })).status).toBe(200);
  });
});

describe('millrace sandbox', () => {
  test('prints its address and keys, and stops with its signal', async () => {
    const args = ['--port', '0', '--users', '2', '--json', '--webhook', 'http://127.0.0.1:9/made-up'];
    const stop = AbortSignal.abort();
    const { stdout, stderr } = await run((io) => sandboxCommand({ ...io, signal: stop }), args);
    const shown = JSON.parse(stdout) as Record<string, unknown>;
    expect(shown['url']).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(shown['api_key']).toMatch(/^sk_sandbox_/);
    expect(shown['webhook_secrets']).toEqual([expect.stringMatching(/^whsec_/)]);
    const [line] = stderr.split('\n').map((text) => JSON.parse(text || '{}') as Record<string, unknown>);
    expect(line).toMatchObject({ msg: 'listening', url: shown['url'] });
  });

  test('a given secret is not printed', async () => {
    const secret = `whsec_${Buffer.from('a secret that is given').toString('base64')}`;
    const args = ['--port', '0', '--json', '--webhook', 'http://127.0.0.1:9/'];
    const signal = AbortSignal.abort();
    for (const [name, more] of [
      ['MILLRACE_SECRET', []],
      ['OF_THIS_TEST', ['--secret-env', 'OF_THIS_TEST']],
    ] as const) {
      const env = { [name]: secret };
      const outcome = await run((io) => sandboxCommand({ ...io, signal }), [...args, ...more], env);
      expect(outcome.stdout + outcome.stderr).not.toContain(secret);
      // It is in use: no other was made.
      expect(JSON.parse(outcome.stdout)).not.toHaveProperty('webhook_secrets');
    }
  });

  test('a secret on the command line, where every user of the machine can read it, is refused', async () => {
    const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
    const outcome = run(sandboxCommand, ['--port', '0', '--secret', secret]);
    await expect(outcome).rejects.toThrow('use --secret-env');
    await expect(outcome).rejects.not.toThrow(secret);
  });

  test.each([
    [['--users', 'many'], '--users many'],
    [['--rate-429', '2'], '--rate-429'],
    [['--webhook', 'nowhere'], '--webhook nowhere'],
    [['--since', '2026-02-30'], 'since 2026-02-30 is not a date'],
    [['--speed', '0'], 'speed'],
  ])('%j is a usage error', async (args, text) => {
    await expect(run(sandboxCommand, ['--port', '0', ...args])).rejects.toThrow(text);
  });

  test('an address that is taken is named', async () => {
    const first = await startSandbox({ users: 1 });
    await expect(startSandbox({ users: 1, port: Number(new URL(first.url).port) })).rejects.toThrow(
      first.url.slice(7),
    );
    await first.stop();
  });
});

async function look(seed: string): Promise<unknown> {
  const bench = await Bench.start({ seed });
  const { json } = await bench.get(`/v2/summary/meal/${bench.user(5)}?start_date=2026-01-01`);
  return [bench.sandbox.apiKey, json];
}

async function statuses(): Promise<number[]> {
  const bench = await Bench.start({ faults: { rate429: 0.3, rate503: 0.2 } });
  const seen: number[] = [];
  for (let n = 0; n < 60; n += 1) seen.push((await bench.get('/v2/user?limit=1')).status);
  return seen;
}
