import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { FIRST_SEGMENT } from '../support/journal-files.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';
import { within } from '../support/until.ts';

const lack = lacksStrace();

/** Which fsync of the journal's segment fails first; some belong to the start. */
const FAILS_FROM = 20;

/** In place of a status: the receiver had ended before it read the request. */
const RESET = 0;

async function answerTo(request: Promise<{ readonly status: number }>): Promise<number> {
  try {
    return (await request).status;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNRESET' || code === 'ECONNREFUSED') return RESET;
    throw error;
  }
}

test.skipIf(lack !== null)(
  `fault 07: EIO on fsync: pending requests 5xx, exit 1, restart recovers${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    const config = writeConfig(folder);
    const log = join(folder, 'journal', FIRST_SEGMENT);
    const receiver = await ReceiverProcess.start(config, {
      program: underStrace(`error=EIO:when=${FAILS_FROM}+`, log),
    });

    const sent = new Map<string, Buffer>();
    const acknowledged = new Map<string, Buffer>();
    const refused: number[] = [];
    for (let n = 0; refused.length === 0; n += 1) {
      expect(n).toBeLessThan(FAILS_FROM + 10);
      const events = [madeUpEvent(3 * n), madeUpEvent(3 * n + 1), madeUpEvent(3 * n + 2)];
      await Promise.all(
        events.map(async ({ id, body }) => {
          sent.set(id, body);
          const status = await answerTo(postSigned(receiver.url, body, { id }));
          if (status === 202) acknowledged.set(id, body);
          else refused.push(status);
        }),
      );
    }
    expect(refused).toContain(503);
    expect([503, RESET]).toEqual(expect.arrayContaining(refused));
    expect(acknowledged.size).toBeGreaterThan(0);
    expect(await within('the end of the receiver', receiver.exited)).toEqual({ code: 1, signal: null });
    expect(receiver.logLines()).toContainEqual(
      expect.objectContaining({
        level: 60,
        code: 'journal_failed',
        detail: expect.stringContaining('EIO'),
      }),
    );

    const next = await ReceiverProcess.start(config);
    // What was refused is sent again, as every sender does; a write that failed may have reached the disk none the less.
    for (const [id, body] of sent) {
      expect([200, 202]).toContain((await postSigned(next.url, body, { id })).status);
    }
    await next.drained();
    expect(await next.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expectConserved(await readBack(archive), sent);
    await expectWhole(archive);
  },
);
