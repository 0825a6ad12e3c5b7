import Database from 'better-sqlite3';
import { here } from './world.ts';

/** SQLite as it is; when the process is gone the system closes its files. */
export default class SimulatedDatabase extends Database {
  constructor(path: string, options?: Database.Options) {
    super(path, options);
    here()
      .scheduler.asker()
      ?.atEnd(() => this.close());
  }
}
