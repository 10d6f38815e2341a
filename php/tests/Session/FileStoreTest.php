<?php

declare(strict_types=1);

namespace Surus\Tests\Session;

use PHPUnit\Framework\TestCase;
use Surus\Session\FileStore;

final class FileStoreTest extends TestCase
{
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/surus-sessions-' . bin2hex(random_bytes(6));
    }

    protected function tearDown(): void
    {
        array_map(unlink(...), glob("$this->folder/*") ?: []);
        @rmdir($this->folder);
    }

    public function testASessionIsReadUntilItIsDeleted(): void
    {
        $store = new FileStore($this->folder);
        self::assertNull($store->read('one'));
        $store->write('one', 'data', 60);
        self::assertSame('data', $store->read('one'));
        self::assertNull($store->read('two'));
        $store->delete('one');
        $store->delete('one');
        self::assertNull($store->read('one'));
    }

    public function testNothingIsUpdatedThatIsNotThere(): void
    {
        $store = new FileStore($this->folder);
        self::assertFalse($store->update('one', 'data', 60));
        self::assertNull($store->read('one'));
        $store->write('one', 'data', 60);
        self::assertTrue($store->update('one', 'other', 60));
        self::assertSame('other', $store->read('one'));
        $store->delete('one');
        self::assertFalse($store->update('one', 'data', 60));
    }

    public function testOldOnesAreNothingAndAreSwept(): void
    {
        $store = new FileStore($this->folder);
        $store->write('old', 'data', -1);
        $store->write('new', 'data', 60);
        self::assertNull($store->read('old'));
        $store->sweep();
        self::assertCount(1, glob("$this->folder/session-*") ?: []);
        self::assertSame('data', $store->read('new'));
    }

    public function testNobodyElseReadsTheFolder(): void
    {
        $store = new FileStore($this->folder);
        $store->write('../../escape', 'data', 60);
        $store->delete('other');
        self::assertSame(0o700, fileperms($this->folder) & 0o777);
        foreach (glob("$this->folder/*") ?: [] as $file) {
            self::assertSame(0o600, fileperms($file) & 0o777, $file);
        }
        self::assertFileDoesNotExist(dirname($this->folder, 2) . '/escape');
    }

    public function testAFolderThatCannotBeMadeIsNamed(): void
    {
        $this->expectExceptionMessage('The folder for sessions cannot be made: /dev/null/sessions');
        new FileStore('/dev/null/sessions');
    }
}
