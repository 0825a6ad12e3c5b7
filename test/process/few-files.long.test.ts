import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { MAIN, writeConfig } from '../support/millrace.ts';
import { expectConserved, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';

const lack = firstLack(
  process.platform === 'linux' ? null : 'the limit is read as Linux tells it',
  lacksProgram('bash'),
);

test.skipIf(lack !== null)(
  `a start with fewer open files than connections and sinks need warns with both numbers${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const warningsWith = async (maxConnections: number): Promise<unknown[]> => {
      const config = writeConfig(folder, {
        server: { maxConnections },
        sinks: { archive: { type: 'files', path: join(folder, 'archive') } },
      });
      const script = 'ulimit -n 400; exec "$0" "$@"';
      const receiver = await ReceiverProcess.start(config, {
        program: ['bash', '-c', script, process.execPath, MAIN],
      });
      expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
      return receiver.logLines().filter(({ msg }) => String(msg).includes('ulimit -n'));
    };
    expect(await warningsWith(1000)).toEqual([
      expect.objectContaining({ allowed: 400, needed: 1280, level: 40 }),
    ]);
    expect(await warningsWith(100)).toEqual([]);
  },
);

test.skipIf(lack !== null)(
  `fault 54: more idle connections than files may be open close the longest idle, and deliveries continue${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    const config = writeConfig(folder, { sinks: { archive: { type: 'files', path: archive } } });
    const receiver = await ReceiverProcess.start(config, {
      program: ['bash', '-c', 'ulimit -n 256; exec "$0" "$@"', process.execPath, MAIN],
    });
    const { port } = new URL(receiver.url);
    const idle = Array.from({ length: 400 }, () => connect({ port: Number(port), host: '127.0.0.1' }));
    onTestFinished(() => {
      for (const socket of idle) socket.destroy();
    });
    for (const socket of idle) socket.on('error', () => undefined);
    await once(idle.at(-1)!, 'connect');
    const sent = new Map<string, Buffer>();
    for (let n = 0; n < 30; n += 1) {
      const { id, body } = madeUpEvent(n);
      expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
      sent.set(id, body);
    }
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expectConserved(await readBack(archive), sent);
  },
);
