import { createInterface } from 'node:readline/promises';
import { messageOf } from '../../core/errors.ts';
import { note, usageError, type Io } from '../io.ts';
import { INIT_SINKS, NAMES, RUNNERS, readRoutes, readSinks, type InitPlan } from './plan.ts';

/** Asks for what was not given, until each answer can be used. An empty answer is what stands in brackets. */
export async function askForPlan(
  io: Io,
  given: Partial<InitPlan> & Pick<InitPlan, 'key'>,
): Promise<InitPlan> {
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  // An input that ends would leave the question open for ever.
  const ended = new AbortController();
  lines.once('close', () => ended.abort());
  const signal = AbortSignal.any([io.signal, ended.signal]);
  const ask = async <T>(question: string, fallback: string, read: (text: string) => T): Promise<T> => {
    for (;;) {
      const answer = (await lines.question(`${question} [${fallback}] `, { signal })).trim();
      try {
        return read(answer === '' ? fallback : answer);
      } catch (error) {
        note(io, messageOf(error));
      }
    }
  };
  try {
    const sinks = given.sinks ?? (await ask(`Which sinks? ${INIT_SINKS.join(', ')}:`, 'files', readSinks));
    const names = sinks.map((sink) => NAMES[sink]).join(',');
    const example = `such as labtest.,lab_report.=${NAMES[sinks[0] ?? 'files']}; the rest goes to every sink`;
    const routes =
      given.routes ??
      (await ask(`Which routes? TYPES=SINKS, a space between two, ${example}:`, `*=${names}`, (text) =>
        readRoutes(text.split(/\s+/), sinks),
      ));
    const runner =
      given.runner ??
      (await ask(`What will run it? ${RUNNERS.join(', ')}:`, 'compose', (text) => {
        const found = RUNNERS.find((known) => known === text);
        if (found === undefined) throw new TypeError(`${text} is none of ${RUNNERS.join(', ')}`);
        return found;
      }));
    return { ...given, sinks, routes, runner };
  } catch (error) {
    if (signal.aborted) throw usageError('not all was answered; nothing was written', { cause: error });
    throw error;
  } finally {
    lines.close();
  }
}
