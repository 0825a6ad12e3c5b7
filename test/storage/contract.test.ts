import { join } from 'node:path';
import { describe } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { storageContract } from './contract.ts';

describe('a folder', () => {
  storageContract(async () => openStore(join(await temporaryFolder(), 'store')));
});
