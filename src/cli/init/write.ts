import { existsSync } from 'node:fs';
import { appendFile, lstat, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { errorCode, whyNotMade } from '../../lib/durable.ts';
import { usageError } from '../io.ts';

export interface NewText {
  /** Relative to the folder. */
  readonly path: string;
  readonly text: string;
}

/**
 * Writes new files; with `force` it replaces existing ones.
 * @throws MillraceError usage that names existing files; then nothing was written
 */
export async function writeTexts(folder: string, texts: readonly NewText[], force: boolean): Promise<void> {
  const there = texts.filter(({ path }) => existsSync(join(folder, path))).map(({ path }) => path);
  if (there.length > 0 && !force)
    throw usageError(`${there.join(', ')}: already there. Nothing was changed; --force replaces them`);
  for (const { path, text } of texts) {
    const file = join(folder, path);
    await inFolder(file, async () => {
      await mkdir(dirname(file), { recursive: true });
      if (!force) return writeWhole(file, text, 'wx');
      await writeWhole(`${file}.tmp`, text, 'w');
      await rename(`${file}.tmp`, file);
    });
  }
}

/** Appends lines to a file. @param mode of a new file */
export async function addLines(folder: string, path: string, lines: string, mode: number): Promise<void> {
  if (lines === '') return;
  const file = join(folder, path);
  const before = await readIfAny(file);
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  await inFolder(file, () => appendFile(file, `${gap}${lines}`, { mode }));
}

/** Text of a file; empty when there is none. @throws MillraceError usage for a FIFO or another special file */
export async function readIfAny(file: string): Promise<string> {
  const stats = await lstat(file).catch(() => null);
  if (stats === null) return '';
  if (!stats.isFile() && !stats.isSymbolicLink()) throw usageError(`${file} is not a file`);
  return inFolder(file, () => readFile(file, 'utf8'));
}

/** Removes a file that cannot be written completely. */
async function writeWhole(file: string, text: string, flag: 'w' | 'wx'): Promise<void> {
  try {
    await writeFile(file, text, { flag });
  } catch (error) {
    // Another program has just created it.
    if (errorCode(error) !== 'EEXIST') await rm(file, { force: true });
    throw error;
  }
}

async function inFolder<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const reason = messageOf(whyNotMade(dirname(file), error));
    throw new MillraceError('folder_unwritable', `${file}: ${reason}`, { cause: error });
  }
}
