import { registerHooks } from 'node:module';
import { pace } from '../pace.ts';

/**
 * From now on the program does at once what it would give to a thread of libuv, on the same files; and what every recovery
 * does anew with the same result, it does once. A recovery is a thousand small steps, and on a busy machine each hand-over to
 * a thread and back costs more than the step.
 */
const STAND_INS: readonly (readonly [specifier: RegExp, file: string])[] = [
  [/^node:fs$/, './fs.ts'],
  [/^node:fs\/promises$/, './fs-promises.ts'],
  [/^node:zlib$/, './zlib.ts'],
  [/^node:crypto$/, './crypto.ts'],
  [/\/file-lock\.ts$/, './file-lock.ts'],
];
const SRC = new URL('../../../src/', import.meta.url).href;

pace.isInline = true;
registerHooks({
  resolve(specifier, context, next) {
    const isSource = context.parentURL?.startsWith(SRC) === true;
    const found = isSource ? STAND_INS.find(([pattern]) => pattern.test(specifier)) : undefined;
    return next(found === undefined ? specifier : new URL(found[1], import.meta.url).href, context);
  },
});
