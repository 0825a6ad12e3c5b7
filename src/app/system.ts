import type { Logger } from 'pino';
import { ActivityBoard } from '../observe/admin/activities.ts';
import { Audit } from '../observe/admin/audit.ts';
import { newToken, Tokens } from '../observe/admin/tokens.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import type { NotedHead } from '../core/proof.ts';
import { ErasedUsers } from '../privacy/erase/erased-users.ts';
import { ownerFolder } from '../journal/owner.ts';
import type { Live } from '../lib/live.ts';
import { Serial } from '../lib/serial.ts';
import { Meter } from '../observe/metrics/meter.ts';
import type { Plan } from './plan.ts';
import { openProof } from '../privacy/proof/open.ts';
import type { Validator } from '../receive/validate/envelope.ts';

export interface AppOptions {
  readonly log: Logger;
  /** Called once when the process must end because the journal can no longer be trusted. */
  readonly onFailure: (error: MillraceError) => void;
  /** Never makes a journal; left out: one that is not there is made. */
  readonly existing?: boolean;
  /** With `journal.type: kafka`: the half of it that runs here; left out: both. */
  readonly role?: Role;
  /** The config file, for commands that the console starts; left out: it starts none. */
  readonly file?: string;
  /** Reads the config again, for the admin API; left out where there is none to read. Rejects when it cannot be used. */
  readonly reload?: () => Promise<void>;
}

export type Role = 'receive' | 'deliver';

/** What the parts start on. */
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
    /** That of the start: what only a restart can change is read from it. */
    config,
    clock,
    meter: new Meter({ clock, plan }),
    users: ErasedUsers.open(config.erasure.path),
    heads,
    proof: openProof(config, heads),
    /** Where this process says who it is. */
    folder,
    audit: new Audit(folder),
    board: new ActivityBoard(clock),
    /** Of this start, for commands and the console. */
    token,
    tokens: new Tokens({ config: config.admin.token, owner: token }, clock),
    validate,
  };
}

/** What each part is given beside what those before it have made. */
export type Base = ReturnType<typeof foundation>;
