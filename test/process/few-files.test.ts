import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { MAIN, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';

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
