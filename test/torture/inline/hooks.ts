import { registerHooks } from 'node:module';
import { pace } from '../pace.ts';

/**
 * From now on the program does at once what it would give to a thread of libuv, on the same files. A recovery is a thousand
 * small steps, and on a busy machine each hand-over to a thread and back costs more than the step.
 */
const STAND_INS: ReadonlyMap<string, string> = new Map([
  ['node:fs/promises', './fs-promises.ts'],
  ['node:zlib', './zlib.ts'],
]);
const SRC = new URL('../../../src/', import.meta.url).href;

pace.isInline = true;
registerHooks({
  resolve(specifier, context, next) {
    const file = context.parentURL?.startsWith(SRC) === true ? STAND_INS.get(specifier) : undefined;
    return next(file === undefined ? specifier : new URL(file, import.meta.url).href, context);
  },
});
