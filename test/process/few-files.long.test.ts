import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { MAIN } from '../support/millrace.ts';
import { Place } from '../support/place.ts';
import { expectConserved } from '../support/read-back.ts';
import type { ReceiverProcess } from '../support/receiver-process.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';

const lack = firstLack(
  process.platform === 'linux' ? null : 'the limit is read as Linux tells it',
  ...['bash', 'env'].map(lacksProgram),
);

const withFiles = (place: Place, most: number): Promise<ReceiverProcess> =>
  place.startProcess({
    program: ['bash', '-c', `ulimit -n ${most}; exec "$0" "$@"`, process.execPath, MAIN],
  });

const warningsWith = async (maxConnections: number): Promise<unknown[]> => {
  const receiver = await withFiles(await Place.make({ server: { maxConnections } }), 400);
  await receiver.stop();
  return receiver.logLines().filter(({ msg }) => String(msg).includes('ulimit -n'));
};

test.skipIf(lack !== null)(
  `a start with fewer open files than connections and sinks need warns with both numbers${skipped(lack)}`,
  async () => {
    expect(await warningsWith(1000)).toMatchObject([{ allowed: 400, needed: 1280, level: 40 }]);
    expect(await warningsWith(100)).toEqual([]);
  },
);

test.skipIf(lack !== null)(
  `fault 54: more idle connections than files may be open close the longest idle, and deliveries continue${skipped(lack)}`,
  async () => {
    const place = await Place.make();
    const receiver = await withFiles(place, 256);
    const port = Number(new URL(receiver.url).port);
    const idle = Array.from({ length: 400 }, () => connect({ port, host: '127.0.0.1' }));
    onTestFinished(() => {
      for (const socket of idle) socket.destroy();
    });
    for (const socket of idle) socket.on('error', () => undefined);
    await once(idle.at(-1)!, 'connect');
    const sent = await receiver.send(30);
    await receiver.stop();
    const found = await place.archived();
    expect(found.size).toBe(30);
    expectConserved(found, sent);
  },
);

const NAME = 'MALLOC_MMAP_THRESHOLD_';

test.skipIf(lack !== null).each([
  [`-u=${NAME}`, `${NAME}=262144`],
  [`${NAME}=1048576`, `${NAME}=1048576`],
])(
  `a receiver has memory of large bodies given back, unless the environment says how: %s${skipped(lack)}`,
  async (before, expected) => {
    const place = await Place.make();
    const program = [
      'env',
      before.replace('-u=', '--unset='),
      process.execPath,
      '--no-warnings',
      MAIN,
    ] as const;
    const { pid } = await place.startProcess({ program: [...program] });
    const wordsOf = (file: string): string[] => readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0');
    expect(wordsOf('cmdline')).toContain('--no-warnings');
    expect(wordsOf('environ').filter((line) => line.startsWith(`${NAME}=`))).toEqual([expected]);
  },
);
