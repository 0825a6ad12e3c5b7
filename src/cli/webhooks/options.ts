import { parseDuration } from '../../lib/units.ts';
import { CONFIG } from '../config-options.ts';
import { httpUrl, type OptionsOf, readBy, repeated, required, textOr } from '../options.ts';
import { MANAGEMENT_OPTIONS } from '../service.ts';

export const COMMON = {
  ...MANAGEMENT_OPTIONS,
  ...CONFIG,
  '--team <id>': 'the team (default: that of the config or the key)',
  '--json': 'print JSON',
};
/** For commands that change stored secrets. */
const STORING = {
  ...COMMON,
  '--secret-file <file>': 'the file of secrets, one a line (default: what signing.secrets names)',
  '--env-file <file>': 'the file that sets the variable of signing.secrets (default: .env)',
  '--no-reload': 'do not make the running receiver read the secrets',
};
/** For commands that give the service a secret. */
const GIVING = {
  ...STORING,
  '--now': 'do not wait until the running receiver accepts the new secret',
  '--show-secret': 'print the secret',
};
export const CREATE = {
  ...GIVING,
  '--url <url>': required(readBy(httpUrl, 'where events are sent to')),
  '--events <prefix>': repeated('only event types with this prefix (default: all)'),
  '--keep-secret': 'give the service the newest stored secret instead of a new one',
};
export const ROTATE = {
  ...GIVING,
  '--again': 'rotate although the old secret of the last rotation is not retired',
  '--retire': 'remove old secrets that no delivery needs any more',
  '--unused-for <duration>': readBy(parseDuration, 'how long an old secret must have been unused', '1d'),
  '--force': 'with --retire: without asking the receiver',
};
export const TEST = {
  ...COMMON,
  '--url <url>': readBy(httpUrl, 'send it there instead'),
  '--type <type>': textOr('millrace.test', 'event type'),
};
export const DELETE = { ...STORING, '--yes': 'do not ask', '--forget-secret': 'remove its secret here too' };

export type TeamFlags = OptionsOf<typeof COMMON>;
export type CreateFlags = OptionsOf<typeof CREATE>;
export type RotateFlags = OptionsOf<typeof ROTATE>;
export type TestFlags = OptionsOf<typeof TEST>;
export type DeleteFlags = OptionsOf<typeof DELETE>;
export type StoreFlags = OptionsOf<typeof STORING> &
  Partial<OptionsOf<typeof GIVING> & Pick<CreateFlags, 'keepSecret'>>;
