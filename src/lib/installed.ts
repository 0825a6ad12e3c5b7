import { existsSync, readFileSync } from 'node:fs';

/**
 * Which of these packages are not installed, and the command that installs the tested versions; null when all are installed. Loads
 * none of them.
 */
export function lackOf(packages: readonly string[]): string | null {
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return null;
  const { optionalDependencies: wanted = {} } = ownPackage();
  const exact = missing.map((name) => (wanted[name] === undefined ? name : `${name}@${wanted[name]}`));
  return `needs ${missing.join(', ')}, not installed beside millrace: ${installCommand('--omit=optional', ...exact)}`;
}

/** The command that installs packages where millrace finds them: beside itself, locally or globally. */
export function installCommand(...words: readonly string[]): string {
  const beside = new URL('../../../', import.meta.url).pathname;
  // Beside a local installation is a package.json; beside a global one is none.
  const isGlobal =
    beside.endsWith('/node_modules/') && !existsSync(new URL('../../../../package.json', import.meta.url));
  return ['npm install', ...(isGlobal ? ['--global'] : []), ...words].join(' ');
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Our own package.json. */
export function ownPackage(): {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
} {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return JSON.parse(text) as ReturnType<typeof ownPackage>;
}
