import { existsSync, readFileSync } from 'node:fs';

/**
 * Says which of these packages are not installed, and how to install them, in the versions that millrace is tested with;
 * null when all are there. Loads none of them.
 */
export function lackOf(packages: readonly string[]): string | null {
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return null;
  const { optionalDependencies: wanted = {} } = ownPackage();
  const exact = missing.map((name) => (wanted[name] === undefined ? name : `${name}@${wanted[name]}`));
  return `needs ${missing.join(', ')}, not installed beside millrace: ${installCommand('--omit=optional', ...exact)}`;
}

/** The command that installs packages where millrace finds them: beside itself, which is another place when it was installed for all. */
export function installCommand(...words: readonly string[]): string {
  const beside = new URL('../../../', import.meta.url).pathname;
  // npm notes what it installs in a folder in that folder's package.json; what it installs for all is noted nowhere.
  const isForAll =
    beside.endsWith('/node_modules/') && !existsSync(new URL('../../../../package.json', import.meta.url));
  return ['npm install', ...(isForAll ? ['--global'] : []), ...words].join(' ');
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** What our own package.json says. */
export function ownPackage(): {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
} {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return JSON.parse(text) as ReturnType<typeof ownPackage>;
}
