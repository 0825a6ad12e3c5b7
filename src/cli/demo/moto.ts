import { setTimeout as wait } from 'node:timers/promises';
import { usageError } from '../io.ts';
import { startChild, unlessInterrupted } from './child.ts';

const WAYS = [['moto_server'], ['python3', '-m', 'moto.server']] as const;
/** It finds a free port itself, so that no other program can be faster. */
const ADDRESS = ['-H', '127.0.0.1', '-p', '0'];
const RUNNING = /Running on (http:\/\/127\.0\.0\.1:\d+)/;
/** Milliseconds: Python reads thousands of files first. */
const PATIENCE = 60_000;

/**
 * Starts moto, a stand-in of S3 that keeps its objects in memory, where it is installed.
 * @returns `http://127.0.0.1:port`, and what ends it
 * @throws MillraceError usage when it is not
 */
export async function startMoto(
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly stop: () => Promise<unknown> }> {
  let reason = '';
  for (const [program, ...args] of WAYS) {
    const running = Promise.withResolvers<string | null>();
    const child = startChild(program, [...args, ...ADDRESS], {
      onLine: (line) => {
        const url = RUNNING.exec(line)?.[1];
        if (url !== undefined) running.resolve(url);
      },
    });
    const over = child.ended.then(() => null);
    const starting = Promise.race([running.promise, over, wait(PATIENCE, null, { ref: false })]);
    const url = await unlessInterrupted(child, signal, starting);
    const stop = (): Promise<unknown> => child.end('SIGKILL');
    if (url !== null) return { url, stop };
    await stop();
    reason = child.said();
  }
  throw usageError(
    `--store s3 needs moto, a stand-in of S3: pip install 'moto[server]'; or name a store: --store s3://bucket/prefix` +
      ` (${reason})`,
  );
}
