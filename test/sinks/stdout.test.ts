import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createSink } from '../../src/sinks/stdout/sink.ts';
import { deliver, makeContext, signal } from './support.ts';

describe('stdout sink', () => {
  it('waits for a slow reader', async () => {
    let taken: (() => void) | undefined;
    const stream = new Writable({
      highWaterMark: 1,
      write(_chunk, _encoding, done) {
        taken = done;
      },
    });
    const sink = createSink({}, makeContext(), stream);
    await sink.open(signal);
    let settled = false;
    const sending = sink.send(deliver(1, 3), signal).finally(() => {
      settled = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toBe(false);
    taken?.();
    expect(await sending).toEqual(Array.from({ length: 3 }, () => ({ status: 'delivered' })));
    await sink.close(signal);
  });

  it('asks for a retry of the whole sink once its reader is gone', async () => {
    const reader = spawn('true', { stdio: ['pipe', 'ignore', 'ignore'] });
    await once(reader, 'close');
    const sink = createSink({}, makeContext(), reader.stdin);
    const failed = await sink.open(signal).then(
      () => sink.send(deliver(1, 2), signal),
      () => null,
    );
    for (const result of failed ?? []) expect(result).toMatchObject({ status: 'retry', sink: true });
    const again = createSink({}, makeContext(), brokenPipe());
    await again.open(signal);
    for (let i = 0; i < 2; i += 1) {
      expect(await again.send(deliver(1, 1), signal)).toEqual([
        { status: 'retry', reason: 'write EPIPE', sink: true },
      ]);
    }
    await expect(again.open(signal)).rejects.toThrow('stdout is closed');
    await again.close(signal);
  });
});

function brokenPipe(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done(new Error('write EPIPE')) });
}
