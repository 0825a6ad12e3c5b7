import type { Logger } from 'pino';
import { ActivityBoard } from '../observe/admin/activities.ts';
import { Audit } from '../observe/admin/audit.ts';
import { newToken, Tokens } from '../observe/admin/tokens.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import type { NotedHead } from '../core/proof.ts';
import type { ObjectStore } from '../core/storage.ts';
import { ErasedUsers } from '../privacy/erase/erased-users.ts';
import { ownerFolder } from '../journal/owner.ts';
import type { Live } from '../lib/live.ts';
import { Serial } from '../lib/serial.ts';
import { Meter } from '../observe/metrics/meter.ts';
import { openStore as openObjectStore } from '../storage/open.ts';
import type { Plan } from './plan.ts';
import { openProof } from '../privacy/proof/open.ts';
import type { Validator } from '../receive/validate/envelope.ts';

export interface AppOptions {
  readonly log: Logger;
  /** Called once, when the process must end because the journal cannot be trusted any more. */
  readonly onFailure: (error: MillraceError) => void;
  /** The journal must exist; by default one is made. */
  readonly existing?: boolean;
  /** With `journal.type: kafka`, the half that runs here; by default both. */
  readonly role?: Role;
  /** The config file, for commands that the console starts; without it, the console starts none. */
  readonly file?: string;
  /** Reads the config again, for the admin API. Rejects when it cannot be used. */
  readonly reload?: () => Promise<void>;
}

export type Role = 'receive' | 'deliver';

/** Values that every part starts with. */
export function foundation(plan: Live<Plan>, options: AppOptions, clock: Clock = systemClock) {
  const { config } = plan.value;
  const heads = new Map<string, NotedHead>();
  const token = newToken();
  const folder = ownerFolder(config);
  const validate: Validator = (body, known) => plan.value.validate(body, known);
  return {
    ...options,
    plan,
    reloads: new Serial(),
    /** The config of the start, for keys that only a restart changes. */
    config,
    clock,
    meter: new Meter({ clock, plan }),
    users: ErasedUsers.open(config.erasure.path),
    heads,
    proof: openProof(config, heads),
    /** Folder with the owner file of this process. */
    folder,
    audit: new Audit(folder),
    board: new ActivityBoard(clock),
    /** For commands and the console; a new one at each start. */
    token,
    tokens: new Tokens({ config: config.admin.token, owner: token }, clock),
    validate,
  };
}

export type Base = ReturnType<typeof foundation>;

/** What every sink gets when it is made, beside its name. */
export function sinkContext({ log, clock, proof, users, config }: Base) {
  const openStore = (url: string): Promise<ObjectStore> => openObjectStore(url, config.storage);
  return { log, clock, proof, isErased: users.has.bind(users), openStore };
}
