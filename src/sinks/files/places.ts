import { resolve } from 'node:path';
import { MANIFEST } from '../../core/archive.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { SinkContext } from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import type { FilesOptions } from './config.ts';
import { ArchiveFolder } from './open-folder.ts';
import { FolderTarget } from './folder-archive.ts';
import { StoreTarget } from './store-archive.ts';
import type { FinishStep, Target } from './archive.ts';

/** Sealed parts that may wait for a store, as so many whole ones. */
const MOST_WAITING = 16;

/** Where parts are gathered, and where finished files go. */
export function placesOf(
  options: FilesOptions,
  context: SinkContext,
  onStep: (step: FinishStep) => void,
): { readonly folder: ArchiveFolder; readonly target: Target } {
  const { path, rotate, spool, compress: compression } = options;
  const { openStore } = context;
  if (spool === null || !isStoreUrl(path))
    return {
      folder: new ArchiveFolder(resolve(path), context.log, [MANIFEST]),
      target: new FolderTarget(path, compression, context, onStep),
    };
  const open = async (): Promise<ObjectStore> => {
    if (openStore === undefined) throw new Error(`${path}: no object store can be used here`);
    return openStore(path);
  };
  const mostWaiting = MOST_WAITING * rotate.bytes;
  return {
    folder: new ArchiveFolder(resolve(spool), context.log),
    target: new StoreTarget({ url: path, open, compression, context, mostWaiting, onStep }),
  };
}
