import { chmod, chown, rename, stat } from 'node:fs/promises';
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { folderError } from '../../core/errors.ts';
import { splitSecrets } from '../../core/secrets.ts';
import { ignoreMissing, isMissing, OWNER_ONLY, readIfThere, syncFolder } from '../../lib/durable.ts';
import { UNFINISHED, writeNew } from '../../lib/new-file.ts';
import { usageError } from '../io.ts';

/** A file or variable from which the receiver reads signing secrets. */
export interface SecretStore {
  /** The file that holds them. */
  readonly path: string;
  /** Such as `./webhook-secret`, or `MILLRACE_SECRET in .env`. */
  readonly name: string;
  /** The variable that the file sets; null for a file of secrets. */
  readonly variable: string | null;
  /** The newest first. */
  read(): readonly string[];
  /** Replaces the file atomically. */
  write(secrets: readonly string[]): Promise<void>;
}

/** When the file was last written, in milliseconds since the epoch; 0 without a file. */
export function writtenAt({ path }: SecretStore): number {
  return Math.floor(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
}

/** A file of secrets, one a line: `${file:…}` in the config. */
export function fileStore(path: string): SecretStore {
  return {
    path,
    name: path,
    variable: null,
    read: () => splitSecrets(readIfThere(path) ?? ''),
    write: (secrets) => replace(path, secrets.map((secret) => `${secret}\n`).join('')),
  };
}

/** A variable in a file that a shell, Docker or systemd reads: `${NAME}` in the config. Other lines stay as they are. */
export function variableStore(path: string, name: string): SecretStore {
  const assignment = new RegExp(`^([ \\t]*(?:export[ \\t]+)?)${name}[ \\t]*=(.*)$`, 'm');
  const readText = (): string => {
    const text = readIfThere(path) ?? '';
    const count = text.match(new RegExp(assignment, 'gm'))?.length ?? 0;
    if (count > 1) throw usageError(`${path} sets ${name} ${count} times: remove all but one`);
    return text;
  };
  return {
    path,
    name: `${name} in ${path}`,
    variable: name,
    read: () => splitSecrets(unquoted(assignment.exec(readText())?.[2] ?? '')),
    write: async (secrets) => {
      const text = readText();
      const value = secrets.length === 1 ? secrets.join() : `"${secrets.join(' ')}"`;
      const line = (before = ''): string => `${before}${name}=${value}`;
      const gap = text === '' || text.endsWith('\n') ? '' : '\n';
      const changed = assignment.test(text)
        ? text.replace(assignment, (_, before: string) => line(before))
        : `${text}${gap}${line()}\n`;
      await replace(path, changed);
    },
  };
}

/** A variable that is set elsewhere, such as by a Kubernetes secret, and cannot be changed here. */
export function fixedStore(path: string, name: string, secrets: readonly string[]): SecretStore {
  return {
    path,
    name: `${name} of the environment`,
    variable: name,
    read: () => secrets,
    write: async (wanted) => {
      if (wanted.join() !== secrets.join())
        throw usageError(
          `${name} is set elsewhere and cannot be changed from here: put the secret there yourself`,
        );
    },
  };
}

function unquoted(value: string): string {
  const [, double, single] = /^\s*(?:"([^"]*)"|'([^']*)')/.exec(value) ?? [];
  return double ?? single ?? value.replace(/(^|\s)#.*$/, '');
}

/** Only the owner may read a new file. An existing file keeps owner, group and mode, unless everybody could read it. */
async function replace(path: string, text: string): Promise<void> {
  try {
    const target = realPath(path);
    const folder = dirname(target);
    const before = (await stat(target).catch(ignoreMissing)) ?? null;
    const mode = before === null || (before.mode & 0o007) !== 0 ? OWNER_ONLY : before.mode & 0o770;
    const temporary = `${folder}/.${basename(target)}${UNFINISHED}`;
    await writeNew(temporary, Buffer.from(text), OWNER_ONLY);
    if (before !== null) {
      const { uid, gid } = await stat(temporary);
      if (uid !== before.uid || gid !== before.gid) await chown(temporary, before.uid, before.gid);
      await chmod(temporary, mode);
    }
    await rename(temporary, target);
    await syncFolder(folder);
  } catch (error) {
    throw folderError(path, error);
  }
}

/** The target of a link is replaced, not the link. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isMissing(error)) return path;
    throw error;
  }
}
