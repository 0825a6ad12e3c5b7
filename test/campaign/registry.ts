import type { Campaign } from './campaign.ts';
import { diskFull } from './disk-full.ts';
import { fsyncError } from './fsync-error.ts';
import { kill } from './kill.ts';
import { powerCut } from './power-cut.ts';
import { twoProcesses } from './two-processes.ts';

/** One entry a campaign; each is a file beside this one. */
export const CAMPAIGNS: Readonly<Record<string, Campaign>> = {
  kill,
  'disk-full': diskFull,
  eio: fsyncError,
  'power-cut': powerCut,
  'two-processes': twoProcesses,
};
