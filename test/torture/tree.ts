import { createHash, hash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, Folder, type Disk, type Node } from './disk.ts';
import { contentOf, isKept, type Fate } from './fates.ts';

/** A state of the disk as it would be found: every folder and file that has a name, in the order of their paths. */
export interface Tree {
  readonly folders: readonly string[];
  readonly files: readonly { readonly path: string; readonly bytes: Buffer }[];
  /** Equal for equal states. */
  readonly digest: string;
}

/** Remembers the hashes of files that stay as they are from one state to the next. */
const known = new WeakMap<File, { readonly version: number; readonly digest: string }>();

export function treeOf(disk: Disk, fate: Fate): Tree {
  const changed = new Map<Folder, Map<string, Node>>();
  for (const naming of disk.namings) {
    if (!isKept(naming, fate.kept)) continue;
    for (const { folder, name, node } of naming.sets) {
      const names = changed.get(folder) ?? new Map(folder.names);
      changed.set(folder, names);
      if (node === null) names.delete(name);
      else names.set(name, node);
    }
  }
  const folders: string[] = [];
  const files: { path: string; bytes: Buffer }[] = [];
  const digest = createHash('sha1');
  const walk = (folder: Folder, path: string): void => {
    const names = changed.get(folder) ?? folder.names;
    for (const name of [...names.keys()].sort()) {
      const node = names.get(name) as Node;
      const below = path === '' ? name : `${path}/${name}`;
      if (node instanceof Folder) {
        folders.push(below);
        digest.update(`${below}/\n`);
        walk(node, below);
      } else {
        const bytes = contentOf(node, fate.files.get(node));
        files.push({ path: below, bytes });
        digest.update(`${below}\0${digestOf(node, bytes)}\n`);
      }
    }
  };
  walk(disk.root, '');
  return { folders, files, digest: digest.digest('hex').slice(0, 24) };
}

function digestOf(file: File, bytes: Buffer): string {
  if (file.changes.length > 0) return hash('sha1', bytes);
  const before = known.get(file);
  if (before?.version === file.version) return before.digest;
  const digest = hash('sha1', bytes);
  known.set(file, { version: file.version, digest });
  return digest;
}

/** Makes `root` what the tree says, and nothing else. */
export function layOut(root: string, { folders, files }: Tree): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { mode: 0o700 });
  for (const folder of folders) mkdirSync(join(root, folder), { mode: 0o700 });
  for (const { path, bytes } of files) writeFileSync(join(root, path), bytes, { mode: 0o600 });
}
