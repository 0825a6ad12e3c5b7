import { resolve } from 'node:path';
import express, { type Router } from 'express';
import { MillraceError } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { wholeNumber } from './api.ts';
import { newestFiles } from './archive-files.ts';

/** An archive that a sink of the config writes. */
export interface SinkArchive {
  readonly sink: string;
  /** Path or URL. */
  readonly path: string;
  readonly isSealed: boolean;
}

/** Lists the files of archives, as their manifests name them. */
export function filesApi(archives: () => readonly SinkArchive[]): Router {
  const api = express.Router();
  api.get('/', async ({ query: { sink, before } }, response) => {
    const archive = archives().find((each) => each.sink === sink);
    if (archive === undefined)
      throw new MillraceError('usage', 'sink must be the name of one with an archive');
    if (isStoreUrl(archive.path))
      throw new MillraceError(
        'usage',
        `${archive.sink} writes to an object store: only archives in folders are listed`,
      );
    const page = await newestFiles(archive.path, before === undefined ? null : wholeNumber(before));
    // Null where nothing outside of millrace can read the records.
    response.json({ ...page, path: archive.isSealed ? null : resolve(archive.path) });
  });
  return api;
}
