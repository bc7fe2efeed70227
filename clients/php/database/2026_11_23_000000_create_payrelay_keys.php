<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('payrelay_keys', static function (Blueprint $table): void {
            $table->string('name', 255)->primary();
            $table->text('record');
        });
    }

    public function down(): void
    {
        // The keys of payments stay: without them a repeat might be another payment.
    }
};
