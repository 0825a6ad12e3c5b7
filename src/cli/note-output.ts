import { noteOutputs } from '../erase/outputs.ts';
import { isStoreUrl } from '../core/place.ts';
import { workFolderFor } from '../lib/work-folder.ts';
import { configIfAny } from './config-options.ts';
import type { Io } from './io.ts';

// Apart from own-folder.ts: commands that need no config would take longer to start.

/** Has erasures look where a command is about to write tables, and where it keeps them until they are complete. */
export async function noteOutput(
  io: Io,
  config: string | undefined,
  out: string,
  work?: string,
): Promise<void> {
  const loaded = configIfAny({ config }, io);
  // Without a config nothing says who erases.
  if (loaded === null) return;
  const places = isStoreUrl(out) ? [out, work ?? workFolderFor(out)] : [out];
  await noteOutputs(loaded.config.erasure.path, places);
}
